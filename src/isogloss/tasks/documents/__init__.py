"""Collections of documents: topics across languages, threads, rankings, summaries."""
