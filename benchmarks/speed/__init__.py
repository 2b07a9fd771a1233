"""Speed: systems side by side under one clock."""
