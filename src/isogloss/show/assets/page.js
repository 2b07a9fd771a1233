"use strict";
/* The list of pairs: sorting, searching, the threshold with its scores, and drawing what is in view. */
(() => {
  const { html, look, kept } = Draw;
  const byId = (id) => document.getElementById(id);
  const list = byId("list");
  const state = { q: "", sort: "order", filter: "all", view: "lines", t: 0 };
  const number = new Intl.NumberFormat("en");
  const plural = (n, word) => `${number.format(n)} ${word}${n === 1 ? "" : "s"}`;

  /* ---- pairs ---- */
  function prepare(record, order) {
    const n = record.target.length, at = new Map();
    const cell = (i, j) => {
      const key = i * n + j;
      if (!at.has(key)) at.set(key, { i, j, p: null, q: null, first: false, second: false, gold: "", own: false, dot: null });
      return at.get(key);
    };
    for (const [i, j, p] of record.links) Object.assign(cell(i, j), { first: true, p });
    for (const [i, j, q] of record.other || []) Object.assign(cell(i, j), { second: true, q });
    for (const [i, j] of record.possible || []) cell(i, j).own = true;
    if (record.gold) {
      for (const [i, j] of record.gold.possible) cell(i, j).gold = "possible";
      for (const [i, j] of record.gold.sure) cell(i, j).gold = "sure";
    }
    for (const [i, j, p] of record.posterior || []) cell(i, j).dot = p;
    const known = record.links.map((link) => link[2]).filter((p) => p !== null);
    const mean = known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
    const pair = {
      ...record, order, cells: [...at.values()], hasGold: Boolean(record.gold), compared: Boolean(record.other),
      names: record.names || ["first", "second"], given: record.confidence !== undefined,
      confidence: record.confidence !== undefined ? record.confidence : mean, tally: null, drawn: false, open: false,
    };
    pair.label = record.line !== undefined ? `line ${record.line}` : `pair ${order + 1}`;
    pair.card = html("article", { class: "pair", tabindex: 0, id: `pair-${record.line !== undefined ? record.line : order + 1}`, "aria-label": pair.label });
    pair.card.pair = pair;
    return pair;
  }
  const pairs = JSON.parse(byId("pairs").textContent).map(prepare);
  const has = {
    gold: pairs.some((pair) => pair.hasGold), other: pairs.some((pair) => pair.compared),
    probability: pairs.some((pair) => pair.confidence !== null || pair.cells.some((cell) => cell.q !== null)),
  };
  const usual = { ...state, sort: has.other ? "differ" : "order" };
  state.sort = usual.sort;
  for (const element of document.querySelectorAll("[data-needs]")) {
    if (!has[element.dataset.needs]) element.tagName === "OPTION" ? element.remove() : element.hidden = true;
  }

  /* ---- counting ---- */
  const empty = () => ({ links: 0, sureHit: 0, hit: 0, sure: 0 });
  function tally(pair, threshold) {
    const first = empty(), second = empty();
    let differ = 0;
    for (const cell of pair.cells) {
      const a = cell.first && kept(cell.p, threshold), b = cell.second && kept(cell.q, threshold);
      for (const [on, sums] of [[a, first], [b, second]]) {
        if (cell.gold === "sure") sums.sure++;
        if (on) {
          sums.links++;
          if (cell.gold) sums.hit++;
          if (cell.gold === "sure") sums.sureHit++;
        }
      }
      if (pair.compared && a !== b) differ++;
    }
    const errors = (sums) => ({ wrong: pair.hasGold ? sums.links - sums.hit : 0, missed: sums.sure - sums.sureHit });
    return { first, second, differ, ...errors(first), other: errors(second) };
  }
  function scores(sums) {
    const percent = (a, b) => b ? (100 * a / b).toFixed(1) : "\u2013";
    const precision = sums.links ? sums.hit / sums.links : NaN, recall = sums.sure ? sums.sureHit / sums.sure : NaN;
    const f = 2 * precision * recall / (precision + recall);
    const aer = sums.links + sums.sure ? 100 * (1 - (sums.sureHit + sums.hit) / (sums.links + sums.sure)) : NaN;
    const shown = (value) => Number.isFinite(value) ? value.toFixed(1) : "\u2013";
    return [["P", percent(sums.hit, sums.links)], ["R", percent(sums.sureHit, sums.sure)], ["F", shown(100 * f)], ["AER", shown(aer)]];
  }

  /* ---- search ---- */
  const fold = (text) => text.normalize("NFKC").toLowerCase();
  let terms = [];
  const matches = (word) => terms.length > 0 && terms.some((term) => fold(word).includes(term));
  function found(pair) {
    if (!terms.length) return true;
    if (state.q.trim().startsWith("#")) return String(pair.line !== undefined ? pair.line : pair.order + 1) === state.q.trim().slice(1);
    pair.hay = pair.hay || fold([...pair.source, ...pair.target, pair.title || ""].join(" "));
    return terms.every((term) => pair.hay.includes(term));
  }

  /* ---- the list ---- */
  let shown = [];
  const ascending = (a, b) => (a === null) - (b === null) || a - b;
  const orders = {
    order: () => 0, errors: (a, b) => b.tally.wrong + b.tally.missed - a.tally.wrong - a.tally.missed,
    confidence: (a, b) => ascending(a.confidence, b.confidence), differ: (a, b) => b.tally.differ - a.tally.differ,
    length: (a, b) => b.source.length + b.target.length - a.source.length - a.target.length,
  };
  const filters = { all: () => true, errors: (pair) => pair.tally.wrong + pair.tally.missed > 0, differ: (pair) => pair.tally.differ > 0 };

  function count() {
    for (const pair of pairs) pair.tally = tally(pair, state.t);
  }
  function arrange() {
    terms = fold(state.q).split(/\s+/).filter(Boolean);
    shown = pairs.filter((pair) => filters[state.filter](pair) && found(pair));
    shown.sort((a, b) => orders[state.sort](a, b) || a.order - b.order);
    const room = Math.max(300, list.clientWidth || 1000); /* read once: a read after each write would lay out the page each time */
    for (const pair of pairs) {
      erase(pair, true);
      pair.card.style.height = guess(pair, room) + "px";
    }
    list.replaceChildren(...shown.map((pair) => pair.card));
    watcher.disconnect(); /* a card that was in view and still is would not be reported again */
    for (const pair of shown) watcher.observe(pair.card);
    byId("nothing").hidden = shown.length > 0;
    report();
  }
  function report() {
    byId("count").textContent = shown.length === pairs.length ? plural(pairs.length, "pair") : `${number.format(shown.length)} of ${plural(pairs.length, "pair")}`;
    const total = { first: empty(), second: empty(), differ: 0 };
    for (const { tally: one, hasGold, compared } of shown) {
      total.differ += one.differ;
      /* a pair without gold, or without the second system, is no part of that score */
      if (has.gold && !hasGold) continue;
      for (const system of compared ? ["first", "second"] : ["first"]) for (const key of Object.keys(one[system])) total[system][key] += one[system][key];
    }
    const names = pairs.length ? (pairs.find((pair) => pair.compared) || pairs[0]).names : [];
    const entry = (system, name) => {
      const sums = total[system], parts = has.other ? [html("bdi", null, name), ": "] : [];
      parts.push(plural(sums.links, "link"));
      if (has.gold) {
        parts.push(`, ${number.format(sums.links - sums.hit)} wrong, ${number.format(sums.sure - sums.sureHit)} missed`);
        for (const [label, value] of scores(sums)) parts.push(` \u00b7 ${label} `, html("b", { "data-score": `${system}-${label}` }, value));
      }
      return html("span", null, parts);
    };
    byId("live").replaceChildren(entry("first", names[0]), ...(has.other ? [entry("second", names[1]), html("span", null, `${plural(total.differ, "link")} differ`)] : []));
  }

  /* ---- one card ---- */
  function head(pair) {
    const { differ, first } = pair.tally;
    const parts = [html("span", { class: "number" }, pair.label)];
    if (pair.title) parts.push(html("bdi", null, pair.title));
    parts.push(html("span", null, plural(first.links, "link")));
    const errors = (name, { wrong, missed }) => {
      if (name) parts.push(html("bdi", null, name + ":"));
      if (wrong) parts.push(html("span", { class: "wrong" }, `${wrong} wrong`));
      if (missed) parts.push(html("span", { class: "missed" }, `${missed} missed`));
      if (!wrong && !missed) parts.push(html("span", null, "as gold"));
    };
    if (pair.hasGold) errors(pair.compared ? pair.names[0] : "", pair.tally);
    if (pair.hasGold && pair.compared) errors(pair.names[1], pair.tally.other);
    if (pair.compared) parts.push(html("span", null, differ ? `${differ} differ` : "systems agree"));
    if (pair.confidence !== null) {
      const bar = html("i", { style: `width:${Math.round(100 * Math.max(0, Math.min(1, pair.confidence)))}%` });
      parts.push(html("span", null, html("span", { class: "meter", "aria-hidden": "true" }, bar), ` ${pair.given ? "confidence" : "mean probability"} ${pair.confidence.toFixed(2)}`));
    }
    if (state.view !== "both") {
      const other = state.view === "lines" ? "grid" : "lines";
      parts.push(html("button", { type: "button", class: "more", "aria-expanded": pair.open }, pair.open ? `hide ${other}` : other));
    }
    parts.push(html("span", { class: "readout", dir: "auto" }));
    return html("div", { class: "head" }, parts);
  }
  function draw(pair, again) {
    if (pair.drawn && !again) return;
    const { card } = pair, room = Math.max(200, card.clientWidth - 36);
    const parts = [head(pair)];
    if (state.view !== "grid" || pair.open) parts.push(Draw.lines(pair, state.t, matches, room));
    if (state.view !== "lines" || pair.open) parts.push(Draw.grid(pair, state.t, matches));
    const table = pair.compared || pair.reasons ? Draw.differences(pair, state.t) : null;
    if (table) parts.push(table);
    card.replaceChildren(...parts);
    card.style.height = "";
    for (const part of parts.slice(1)) part.finish();
    pair.drawn = true;
  }
  function erase(pair, forget) {
    if (pair.drawn && !forget) pair.card.style.height = pair.card.offsetHeight + "px";
    if (pair.drawn) pair.card.replaceChildren();
    pair.drawn = false;
    pair.card.classList.remove("focus");
  }
  /* Before a card is drawn its height is guessed, so that the scroll bar is about right. */
  function guess(pair, room) {
    const letters = Math.max(pair.source.join(" ").length, pair.target.join(" ").length);
    const lines = 150 * Math.ceil(letters * 10 / room);
    const grid = 120 + pair.source.length * (pair.source.length <= 24 ? 24 : 20);
    return 40 + (state.view === "lines" ? lines : state.view === "grid" ? grid : lines + grid);
  }
  const watcher = new IntersectionObserver((entries) => {
    /* leave first: heights are read before anything is written */
    for (const entry of entries) if (!entry.isIntersecting && entry.target.isConnected) erase(entry.target.pair, false);
    for (const entry of entries) if (entry.isIntersecting) draw(entry.target.pair, false);
  }, { rootMargin: "900px 0px" });
  const redraw = () => { for (const pair of shown) if (pair.drawn) draw(pair, true); };

  /* ---- pointing at words ---- */
  function point(card, side, k, other) {
    const on = new Set();
    for (const element of card.querySelectorAll(".on")) element.classList.remove("on");
    card.classList.toggle("focus", side !== null);
    const readout = card.querySelector(".readout");
    if (readout) readout.textContent = "";
    if (side === null) return;
    const pair = card.pair, texts = [];
    for (const cell of pair.cells) {
      const seen = look(pair, cell, state.t);
      const here = side === "link" ? cell.i === k && cell.j === other : (side === "s" ? cell.i : cell.j) === k;
      if (!here || !seen.kind || (side !== "link" && ["faint", "allowed"].includes(seen.kind))) continue;
      on.add(`s${cell.i}`).add(`t${cell.j}`).add(`${cell.i}-${cell.j}`);
      texts.push(side === "link" ? Draw.explain(pair, seen) : `\u2068${side === "s" ? pair.target[cell.j] : pair.source[cell.i]}\u2069` + (seen.p === null ? "" : ` ${seen.p.toFixed(2)}`));
    }
    if (side !== "link") on.add(side + k);
    for (const element of card.querySelectorAll("[data-s], [data-t]")) {
      const { s, t } = element.dataset;
      const key = s !== undefined && t !== undefined ? `${s}-${t}` : s !== undefined ? "s" + s : "t" + t;
      const band = element.classList.contains("band");
      if (band ? (side === "link" ? on.has(key) : key === side + k) : on.has(key)) element.classList.add("on");
    }
    const word = side === "s" ? pair.source[k] : pair.target[k];
    readout.textContent = side === "link" ? texts.join("") : `\u2068${word}\u2069 \u2014 ${texts.join(", ") || "no link"}`;
  }
  list.addEventListener("pointerover", (event) => {
    const card = event.target.closest(".pair"), element = event.target.closest("[data-s], [data-t]");
    if (!card) return;
    if (!element) return point(card, null);
    const { s, t } = element.dataset;
    card.cursor = null;
    if (s !== undefined && t !== undefined) point(card, "link", Number(s), Number(t));
    else point(card, s !== undefined ? "s" : "t", Number(s !== undefined ? s : t));
  });
  list.addEventListener("pointerout", (event) => {
    const card = event.target.closest(".pair");
    if (card && !card.contains(event.relatedTarget)) point(card, null);
  });
  list.addEventListener("click", (event) => {
    if (!event.target.closest(".more")) return;
    const { pair } = event.target.closest(".pair");
    pair.open = !pair.open;
    draw(pair, true);
    pair.card.querySelector(".more").focus();
  });

  /* ---- controls and their trace in the address, so that a view can be passed on ---- */
  function keep() {
    const said = Object.entries(state).filter(([key, value]) => value !== usual[key]);
    try { history.replaceState(null, "", "#" + new URLSearchParams(said)); } catch { /* some viewers forbid it */ }
  }
  function show() {
    byId("search").value = state.q;
    byId("sort").value = state.sort;
    byId("filter").value = state.filter;
    byId("threshold").value = state.t;
    byId("threshold-value").textContent = Number(state.t).toFixed(2);
    for (const radio of document.querySelectorAll('[name="view"]')) radio.checked = radio.value === state.view;
  }
  const inView = () => shown.find((pair) => pair.card.getBoundingClientRect().bottom > 120);
  const focused = () => (document.activeElement && document.activeElement.closest(".pair") || {}).pair;
  function change(part) {
    const active = focused(), scrolled = list.getBoundingClientRect().top < 0;
    /* another view or threshold keeps the place; another order starts at the top */
    const anchor = !scrolled ? null : "view" in part || "t" in part ? active || inView() : shown[0];
    Object.assign(state, part);
    show();
    if ("t" in part) count();
    if ("view" in part) for (const pair of pairs) pair.open = false;
    arrange();
    if (active && active.card.isConnected) active.card.focus({ preventScroll: true });
    if (anchor) (anchor.card.isConnected && ("view" in part || "t" in part) ? anchor.card : list).scrollIntoView();
    keep();
  }
  const later = (act, wait) => { let timer; return (...given) => { clearTimeout(timer); timer = setTimeout(() => act(...given), wait); }; };
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("search").addEventListener("input", later(() => change({ q: byId("search").value }), 120));
  byId("sort").addEventListener("change", (event) => change({ sort: event.target.value }));
  byId("filter").addEventListener("change", (event) => change({ filter: event.target.value }));
  for (const radio of document.querySelectorAll('[name="view"]')) radio.addEventListener("change", () => change({ view: radio.value }));
  /* while the slider moves only numbers and visible cards follow; the order does when it is let go */
  let frame = 0;
  byId("threshold").addEventListener("input", (event) => {
    state.t = Number(event.target.value);
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => { show(); count(); report(); redraw(); });
  });
  byId("threshold").addEventListener("change", (event) => {
    cancelAnimationFrame(frame);
    change({ t: Number(event.target.value) });
  });
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const turn = dark ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    root.dataset.theme = turn[(turn.indexOf(root.dataset.theme) + 1) % 3];
  });

  /* ---- keyboard ---- */
  function go(step, wanted) {
    if (!shown.length) return;
    const current = focused();
    let at = shown.indexOf(current || inView());
    if (current) at += step;
    while (wanted && shown[at] && !wanted(shown[at])) at += step;
    const goal = shown[Math.max(0, Math.min(shown.length - 1, at))];
    draw(goal, false);
    goal.card.focus({ preventScroll: true });
    goal.card.scrollIntoView({ block: "nearest" });
  }
  function step(card, key) {
    const pair = card.pair, now = card.cursor || null, horizontal = key === "ArrowLeft" || key === "ArrowRight";
    if (!now && !horizontal) return false;
    let next;
    if (!now) next = ["s", 0];
    else if (!horizontal) next = [key === "ArrowUp" ? "s" : "t", now[1]];
    else next = [now[0], now[1] + ((key === "ArrowRight") !== Boolean(pair.rtl[now[0] === "s" ? 0 : 1]) ? 1 : -1)];
    const words = next[0] === "s" ? pair.source : pair.target;
    if (!words.length) return false;
    next[1] = Math.max(0, Math.min(words.length - 1, next[1]));
    card.cursor = next;
    point(card, next[0], next[1]);
    return true;
  }
  const turn = (id, by) => {
    const select = byId(id);
    select.selectedIndex = (select.selectedIndex + by + select.length) % select.length;
    change({ [id]: select.value });
  };
  const keys = {
    j: () => go(1), k: () => go(-1), e: () => go(1, (pair) => pair.tally.wrong + pair.tally.missed + pair.tally.differ > 0),
    "/": () => byId("search").focus(), s: () => turn("sort", 1), f: () => turn("filter", 1),
    g: () => change({ view: { lines: "grid", grid: "both", both: "lines" }[state.view] }),
    "[": () => has.probability && change({ t: Math.max(0, Math.round(100 * state.t - 5) / 100) }),
    "]": () => has.probability && change({ t: Math.min(1, Math.round(100 * state.t + 5) / 100) }), "?": () => byId("help").click(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "radio";
    if (event.key === "Escape") {
      if (event.target.id === "search" && state.q) change({ q: "" });
      else if (typing) event.target.blur();
      else if (event.target.pair) { event.target.cursor = null; point(event.target, null); }
    } else if (!typing && event.target.pair && event.key.startsWith("Arrow")) {
      if (step(event.target, event.key)) event.preventDefault();
    } else if (!typing && keys[event.key]) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  /* ---- legend ---- */
  function legend() {
    const cell = (more) => ({ i: 0, j: 0, gold: "", own: false, ...more });
    const entry = (seen, text) => {
      const full = { cell: cell(seen.cell), p: 0.9, first: false, second: false, differs: false, ...seen };
      full.cell = cell(seen.cell);
      const picture = Draw.svg("svg", { class: "grid", width: 22, height: 22, "aria-hidden": "true" }, Draw.mark(full, 0, 0, 22));
      const curves = Draw.svg("svg", { class: "curves", style: "position:static", width: 44, height: 22, "aria-hidden": "true" });
      if (!["faint", "allowed"].includes(full.kind)) curves.append(Draw.curve({ source: [""], target: [""], names: ["", ""] }, full, 4, 2, 40, 20, []));
      return html("li", null, picture, curves, html("span", null, text));
    };
    const items = [];
    if (!has.gold) items.push(entry({ kind: "link", first: true }, "link; fainter is less probable"));
    if (pairs.some((pair) => pair.cells.some((one) => one.own))) items.push(entry({ kind: "possible", p: null }, "possible link"));
    if (has.gold) {
      items.push(
        entry({ kind: "right", first: true, cell: { gold: "sure" } }, "right; sure in gold"), entry({ kind: "right", first: true, cell: { gold: "possible" } }, "right; possible in gold"),
        entry({ kind: "wrong", first: true }, "wrong: not in gold"), entry({ kind: "missed", p: null, cell: { gold: "sure" } }, "missed: sure in gold"),
        entry({ kind: "allowed", p: null, cell: { gold: "possible" } }, "possible in gold, not linked"));
    }
    if (pairs.some((pair) => pair.posterior)) items.push(entry({ kind: "faint", p: 0.4 }, "probability without a link"));
    if (has.other) {
      const { names } = pairs.find((pair) => pair.compared);
      items.push(entry({ kind: "link", first: true, differs: true }, `only ${names[0]}`), entry({ kind: "other", second: true, differs: true }, `only ${names[1]}`));
    }
    const key = (name, text) => [html("kbd", null, name), ` ${text} \u00b7 `];
    byId("legend").replaceChildren(html("ul", null, items), html("p", null,
      key("j", "next pair"), key("k", "previous"), has.gold || has.other ? key("e", "next with errors or differences") : [], key("\u2190 \u2192 \u2191 \u2193", "words of the pair"), key("/", "search"),
      key("s", "sort"), key("f", "filter"), key("g", "view"), has.probability ? key("[ ]", "threshold") : [], html("kbd", null, "Esc"), " clear"),
      html("p", null, "P: links that gold allows. R: sure gold links that were found. F: their harmonic mean. AER: 1 \u2212 (sure found + allowed) / (links + sure). Counted over the pairs shown."));
  }
  byId("help").addEventListener("click", () => {
    byId("legend").hidden = !byId("legend").hidden;
    byId("help").setAttribute("aria-expanded", String(!byId("legend").hidden));
    if (!byId("legend").hidden) byId("legend").scrollIntoView({ block: "nearest" });
  });

  /* ---- size, print, start ---- */
  let width = 0;
  new ResizeObserver(later(() => {
    if (width && list.clientWidth !== width) redraw();
    width = list.clientWidth;
  }, 150)).observe(list);
  addEventListener("beforeprint", () => {
    list.style.width = "660px"; /* about the width of a sheet, so that long pairs are cut to fit it */
    for (const pair of shown) draw(pair, true);
    list.style.width = "";
  });
  addEventListener("afterprint", redraw);
  const said = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(state)) {
    if (said.has(key)) state[key] = key === "t" ? Math.max(0, Math.min(1, Number(said.get(key)) || 0)) : said.get(key);
  }
  for (const id of ["sort", "filter"]) if (![...byId(id).options].some((option) => option.value === state[id])) state[id] = byId(id).options[0].value;
  if (!["lines", "grid", "both"].includes(state.view)) state.view = "lines";
  legend();
  show();
  count();
  arrange();
  const goal = /^#pair-\d+$/.test(location.hash) && byId(location.hash.slice(1));
  if (goal) goal.scrollIntoView();
})();
