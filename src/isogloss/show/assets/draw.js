"use strict";
/* How one pair is drawn: two lines of words with curves, and the grid. All text goes in as text, never as markup. */
const Draw = (() => {
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const LEAN = 60 * Math.PI / 180;
  const pen = document.createElement("canvas").getContext("2d");

  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }
  const html = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const svg = (name, attributes, ...children) => fill(document.createElementNS(NAMESPACE, name), attributes, children);

  const strongRight = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
  const letter = /\p{L}/u;
  function runsRightToLeft(word, otherwise) {
    for (const character of word) if (letter.test(character)) return strongRight.test(character);
    return otherwise;
  }

  /* ---- what a cell is at a threshold ---- */
  const kept = (p, threshold) => p === null || p >= threshold;
  function look(pair, cell, threshold) {
    const first = cell.first && kept(cell.p, threshold), second = cell.second && kept(cell.q, threshold);
    let kind = "faint";
    if (first) kind = !pair.hasGold ? "link" : cell.gold ? "right" : "wrong";
    else if (cell.gold) kind = cell.gold === "sure" ? "missed" : "allowed";
    else if (cell.own) kind = "possible";
    else if (second) kind = "other";
    else if (cell.dot === null && !cell.first && !cell.second) kind = null;
    const p = first ? cell.p : cell.dot !== null ? cell.dot : cell.first ? cell.p : cell.q;
    const wrong = pair.hasGold && !cell.gold && (first || second);
    return { cell, kind, first, second, p, wrong, differs: pair.compared && first !== second };
  }
  function explain(pair, seen) {
    const { cell, kind, p } = seen;
    const says = p === null ? [] : [p.toFixed(2)];
    const meaning = { right: cell.gold + " in gold", wrong: "wrong: not in gold", missed: "missed: sure in gold",
      allowed: "possible in gold, not linked", possible: "possible", faint: "not linked", other: seen.wrong ? "wrong: not in gold" : "" }[kind];
    if (meaning) says.push(meaning);
    if (seen.differs) says.push("only " + pair.names[seen.first ? 0 : 1]);
    /* isolates keep the dash and the number in place between words of either direction */
    const pairOfWords = `\u2068${pair.source[cell.i]}\u2069 \u2014 \u2068${pair.target[cell.j]}\u2069`;
    return pairOfWords + (says.length ? ": " + says.join(", ") : "");
  }

  /* ---- lines ---- */
  function widths(words, font) {
    pen.font = font;
    const sums = [0];
    for (const word of words) sums.push(sums[sums.length - 1] + pen.measureText(word).width + 14);
    return sums;
  }

  /* Cut a long pair into stanzas that fit the page, where the fewest links are cut. */
  function stanzas(pair, links, font, full) {
    const source = widths(pair.source, font), target = widths(pair.target, font);
    const nSource = pair.source.length, nTarget = pair.target.length;
    const longest = Math.max(source[nSource], target[nTarget]);
    const room = Math.min(full, 1.15 * longest / Math.ceil(longest / full)); /* about equal, so that no word is left over */
    const pieces = [];
    let i0 = 0, j0 = 0;
    const reach = (sums, from) => {
      let to = Math.min(from + 1, sums.length - 1);
      while (to + 1 < sums.length && sums[to + 1] - sums[from] <= room) to++;
      return to;
    };
    for (;;) {
      const iMost = reach(source, i0), jMost = reach(target, j0);
      if (iMost === nSource && jMost === nTarget) return [...pieces, [i0, nSource, j0, nTarget]];
      /* only these can be cut here or not; a sentence of thousands of words is not gone through for every cut */
      const near = links.filter(({ cell }) => (cell.i >= i0 && cell.i <= iMost) || (cell.j >= j0 && cell.j <= jMost));
      let best = null;
      const iLeast = i0 + Math.ceil((iMost - i0) * 0.6), jLeast = j0 + Math.ceil((jMost - j0) * 0.6);
      for (let i = iLeast; i <= iMost; i++) {
        for (let j = jLeast; j <= jMost; j++) {
          let cost = 5 * (iMost - i) / Math.max(1, iMost - i0) + 5 * (jMost - j) / Math.max(1, jMost - j0);
          for (const { cell } of near) if ((cell.i < i) !== (cell.j < j)) cost++;
          if (best === null || cost < best[0]) best = [cost, i, j];
        }
      }
      pieces.push([i0, best[1], j0, best[2]]);
      [, i0, j0] = best;
    }
  }

  function row(pair, side, from, to, linked, matches) {
    const words = pair[side], name = side === "source" ? "s" : "t", at = side === "source" ? 0 : 1;
    const line = html("div", { class: "words " + side, dir: pair.rtl[at] ? "rtl" : "ltr", lang: pair.languages ? pair.languages[at] : "" });
    for (let k = from; k < to; k++) {
      const classes = ["word"];
      if (!linked.has(k)) classes.push("bare");
      if (matches(words[k])) classes.push("found");
      /* brackets and digits alone have no direction: they take the sentence's, else a bracket would not be mirrored */
      const dir = letter.test(words[k]) ? "auto" : pair.rtl[at] ? "rtl" : "ltr";
      line.append(html("span", { class: classes.join(" "), dir, ["data-" + name]: k }, words[k]));
    }
    if (from === to) line.append(html("span", { class: "none" }, words.length ? "\u2026" : "(no words)"));
    return line;
  }

  function lines(pair, threshold, matches, room) {
    const font = `16.5px ${getComputedStyle(document.body).fontFamily}`;
    const links = pair.cells.map((cell) => look(pair, cell, threshold))
      .filter((seen) => seen.kind && !["faint", "allowed"].includes(seen.kind) || seen.second);
    const linkedSource = new Set(), linkedTarget = new Set();
    for (const { cell, first } of links) if (first || cell.own) { linkedSource.add(cell.i); linkedTarget.add(cell.j); }
    const body = html("div", { class: "lines" });
    const cuts = stanzas(pair, links, font, room);
    for (const [i0, i1, j0, j1] of cuts) {
      const piece = html("div", { class: "stanza", dir: pair.rtl[0] && pair.rtl[1] ? "rtl" : null },
        row(pair, "source", i0, i1, linkedSource, matches), html("div", { class: "between" }),
        row(pair, "target", j0, j1, linkedTarget, matches));
      body.append(piece);
    }
    /* Curves need the places of the words, which exist once the card is in the document. */
    body.finish = () => [...body.children].forEach((piece, k) => curves(pair, piece, cuts[k], links));
    return body;
  }

  function curves(pair, piece, [i0, i1, j0, j1], links) {
    const [top, between, bottom] = piece.children;
    const middle = (word) => word.offsetLeft + word.offsetWidth / 2;
    const source = [...top.querySelectorAll(".word")].map(middle), target = [...bottom.querySelectorAll(".word")].map(middle);
    let span = 0;
    for (const { cell } of links) {
      if (cell.i >= i0 && cell.i < i1 && cell.j >= j0 && cell.j < j1) span = Math.max(span, Math.abs(source[cell.i - i0] - target[cell.j - j0]));
    }
    between.style.height = (links.length ? Math.round(Math.min(110, 40 + span * 0.12)) : 8) + "px";
    const y0 = top.offsetTop + top.offsetHeight, y1 = bottom.offsetTop;
    const canvas = svg("svg", { class: "curves", width: piece.offsetWidth, height: piece.offsetHeight, "aria-hidden": "true" });
    const signs = [];
    for (const seen of links) {
      const { i, j } = seen.cell;
      const inSource = i >= i0 && i < i1, inTarget = j >= j0 && j < j1;
      if (inSource && inTarget) canvas.append(curve(pair, seen, source[i - i0], y0, target[j - j0], y1, signs));
      else if (inSource) canvas.append(stub(pair, seen, source[i - i0], y0, 1, j >= j1));
      else if (inTarget) canvas.append(stub(pair, seen, target[j - j0], y1, -1, i >= i1));
    }
    piece.append(canvas);
  }

  function stroke(seen) {
    const p = seen.p === null ? 1 : Math.max(0, Math.min(1, seen.p));
    const plain = seen.first || seen.kind === "other";
    return { class: seen.kind, "stroke-width": plain ? (1.1 + 1.9 * p).toFixed(2) : 2, "stroke-opacity": plain ? (0.3 + 0.7 * p).toFixed(2) : 1 };
  }

  function curve(pair, seen, x0, y0, x1, y1, signs) {
    const bend = (y0 + y1) / 2, { i, j } = seen.cell;
    const d = `M${x0} ${y0}C${x0} ${bend} ${x1} ${bend} ${x1} ${y1}`;
    const group = svg("g", { class: "curve " + seen.kind, "data-s": i, "data-t": j, "data-l": "" },
      svg("title", null, explain(pair, seen)), svg("path", { d, class: "hit" }), svg("path", { d, ...stroke(seen) }));
    /* a sign stands on its curve, where no other sign is yet */
    const free = () => {
      const places = [0.35, 0.65, 0.22, 0.5, 0.78].map((t) => [x0 + (x1 - x0) * t * t * (3 - 2 * t), y0 + (y1 - y0) * (1.5 * t - 1.5 * t * t + t * t * t)]);
      const place = places.find(([x, y]) => signs.every((sign) => Math.hypot(sign[0] - x, sign[1] - y) > 13)) || places[0];
      signs.push(place);
      return place;
    };
    if (seen.wrong || ["wrong", "missed"].includes(seen.kind)) {
      const [x, y] = free();
      group.append(svg("circle", { class: "badge", cx: x, cy: y, r: 5.5 }));
      if (seen.kind !== "missed") group.append(svg("path", { class: "sign", d: `M${x - 2.6} ${y - 2.6}l5.2 5.2m0 -5.2l-5.2 5.2` }));
    }
    if (seen.differs) {
      const [x, y] = free();
      group.append(svg("circle", { class: "badge digit", cx: x, cy: y, r: 6.5 }), svg("text", { x, y: y + 3.5 }, seen.first ? "1" : "2"));
    }
    return group;
  }

  /* A link whose other word is in another stanza: a short tail, beside the curves, with an arrow that says where. */
  function stub(pair, seen, x, y, down, later) {
    const side = x + (later ? 10 : -10), end = y + down * 12;
    return svg("g", { class: "curve stub " + seen.kind, "data-s": seen.cell.i, "data-t": seen.cell.j, "data-l": "" },
      svg("title", null, explain(pair, seen)), svg("path", { d: `M${x} ${y}Q${x} ${end} ${side} ${end}`, ...stroke(seen) }),
      svg("text", { x: side, y: end + 4 }, later ? "\u25be" : "\u25b4"));
  }

  /* ---- grid ---- */
  function mark(seen, x, y, square, title) {
    const inset = square * 0.17, inner = square - 2 * inset, place = { x: x + inset, y: y + inset, width: inner, height: inner };
    const p = seen.p === null ? 1 : Math.max(0, Math.min(1, seen.p)), { cell } = seen;
    const group = svg("g", { class: "mark " + seen.kind, "data-s": cell.i, "data-t": cell.j, "data-l": seen.kind === "faint" ? null : "" },
      title ? svg("title", null, title) : null, svg("rect", { class: "area", x, y, width: square, height: square }));
    /* two systems share a square: the upper left half is the first's, the lower right half the second's */
    const [a, b, c, e] = [x + inset, y + inset, x + inset + inner, y + inset + inner];
    const shape = !seen.differs ? `M${a} ${b}H${c}V${e}H${a}Z` : seen.first ? `M${a} ${b}H${c}L${a} ${e}Z` : `M${c} ${b}V${e}H${a}Z`;
    if (seen.first || seen.differs) group.append(svg("path", { class: seen.first ? "fill" : "fill second", d: shape, "fill-opacity": (seen.p === null ? 1 : 0.15 + 0.85 * p).toFixed(2) }));
    else if (seen.kind === "faint") group.append(svg("circle", { class: "dot", cx: x + square / 2, cy: y + square / 2, r: Math.max(0.8, inner / 2 * Math.sqrt(p)) }));
    if (cell.gold || seen.kind === "possible") group.append(svg("rect", { class: "box", ...place, "stroke-dasharray": cell.gold === "sure" ? null : "3 2" }));
    if (seen.wrong || seen.kind === "wrong") {
      const arm = square - 3.2 * inset;
      group.append(svg("path", { class: "cross", d: `M${x + 1.6 * inset} ${y + 1.6 * inset}l${arm} ${arm}m0 ${-arm}l${-arm} ${arm}` }));
    }
    if (seen.kind === "missed") group.append(svg("circle", { class: "ring", cx: x + square / 2, cy: y + square / 2, r: inner / 4 }));
    return group;
  }

  function grid(pair, threshold, matches) {
    const nSource = pair.source.length, nTarget = pair.target.length, longest = Math.max(nSource, nTarget);
    if (!nSource || !nTarget) return Object.assign(html("p", { class: "none" }, "One side has no words: there is no grid."), { finish() {} });
    if (longest > 400) return Object.assign(html("p", { class: "none" }, "Too many words for a grid: the lines show them."), { finish() {} });
    const [square, font] = longest <= 24 ? [24, 14] : longest <= 40 ? [20, 13] : [16, 11];
    pen.font = `${font}px ${getComputedStyle(document.body).fontFamily}`;
    const short = (word) => [...word].length > 30 ? [...word].slice(0, 29).join("") + "\u2026" : word;
    const size = (word) => pen.measureText(short(word)).width;
    const lengths = pair.target.map(size), mirrored = Boolean(pair.rtl[1]);
    const left = Math.ceil(10 + Math.max(...pair.source.map(size)));
    const top = Math.ceil(14 + Math.max(...lengths) * Math.sin(LEAN) + font * Math.cos(LEAN));
    const over = Math.max(...lengths.map((length, j) => (j + 0.5) * square + length * Math.cos(LEAN) + font), nTarget * square);
    const width = Math.ceil(left + over + 2), height = top + nSource * square + 2;
    const x = (j) => mirrored ? width - left - (j + 1) * square : left + j * square;
    const first = Math.min(x(0), x(nTarget - 1)), last = first + nTarget * square, bottom = top + nSource * square;
    const canvas = svg("svg", { class: "grid", width, height, viewBox: `0 0 ${width} ${height}`, style: `font-size:${font}px`, role: "img", "aria-label": pair.label });

    for (let i = 0; i < nSource; i++) canvas.append(svg("rect", { class: "band", "data-s": i, x: first, y: top + i * square, width: nTarget * square, height: square }));
    for (let j = 0; j < nTarget; j++) canvas.append(svg("rect", { class: "band", "data-t": j, x: x(j), y: top, width: square, height: nSource * square }));
    let d = "";
    for (let i = 0; i <= nSource; i++) d += `M${first} ${top + i * square}H${last}`;
    for (let j = 0; j <= nTarget; j++) d += `M${first + j * square} ${top}V${bottom}`;
    canvas.append(svg("path", { class: "rules", d }));

    const seenAll = pair.cells.map((cell) => look(pair, cell, threshold)).filter((seen) => seen.kind);
    const linked = { s: new Set(), t: new Set() };
    for (const { cell, first: on } of seenAll) if (on || cell.own) { linked.s.add(cell.i); linked.t.add(cell.j); }
    const label = (word, key, k, holdsLeft, at, place) => {
      const right = runsRightToLeft(word, Boolean(pair.rtl[at]));
      const classes = [linked[key].has(k) ? "" : "bare", matches(word) ? "found" : ""].join(" ").trim();
      /* in SVG an anchor speaks of reading order, not of sides */
      return svg("text", { class: classes || null, ["data-" + key]: k, direction: right ? "rtl" : "ltr",
        "text-anchor": holdsLeft !== right ? "start" : "end", lang: pair.languages ? pair.languages[at] : "", ...place }, short(word));
    };
    pair.source.forEach((word, i) => canvas.append(label(word, "s", i, mirrored, 0,
      { x: mirrored ? width - left + 6 : left - 6, y: top + (i + 0.5) * square + font * 0.35 })));
    pair.target.forEach((word, j) => canvas.append(label(word, "t", j, !mirrored, 1,
      { transform: `translate(${x(j) + square / 2 + (mirrored ? -1 : 1) * font * 0.25} ${top - 6}) rotate(${mirrored ? 60 : -60})` })));
    for (const seen of seenAll) canvas.append(mark(seen, x(seen.cell.j), top + seen.cell.i * square, square, explain(pair, seen)));
    const sheet = html("div", { class: "sheet", dir: pair.rtl[0] && mirrored ? "rtl" : null }, canvas);
    sheet.finish = () => { if (mirrored) sheet.scrollLeft = sheet.scrollWidth; };
    return sheet;
  }

  /* ---- where two systems differ, in words, with what decided ---- */
  function verdict(pair, cell, on, p) {
    const said = on ? "linked" + (p === null ? "" : " " + p.toFixed(2)) : "not linked";
    if (!pair.hasGold) return (on ? "\u25cf " : "\u2013 ") + said;
    if (on) return cell.gold ? `\u2713 ${said}, right` : `\u2717 ${said}, wrong`;
    return cell.gold === "sure" ? "\u25cb missed" : "\u2013 " + said + (cell.gold ? "" : ", right");
  }
  function reasons(why) {
    const signed = (value) => (value < 0 ? "\u2212" : "+") + Math.abs(value).toFixed(2);
    const parts = why.features.map(([name, value]) => html("span", { class: "part" }, html("bdi", null, name), " ", html("b", null, signed(value))));
    return html("td", { class: "why" }, why.text ? html("span", { class: "text", dir: "auto" }, why.text) : null,
      why.probability === null ? null : html("span", { class: "part" }, `probability ${why.probability.toFixed(2)}`), parts);
  }
  function differences(pair, threshold) {
    const why = new Map((pair.reasons || []).map((one) => [`${one.source}-${one.target}`, one]));
    const rows = pair.cells.map((cell) => look(pair, cell, threshold))
      .filter((seen) => seen.differs || why.has(`${seen.cell.i}-${seen.cell.j}`))
      .sort((a, b) => a.cell.i - b.cell.i || a.cell.j - b.cell.j);
    if (!rows.length) return null;
    const some = rows.some(({ cell }) => why.has(`${cell.i}-${cell.j}`));
    const title = pair.compared ? ["Where ", html("bdi", null, pair.names[0]), " and ", html("bdi", null, pair.names[1]), ` differ (${rows.length})`] : [`Why (${rows.length})`];
    const heads = [["Words"], ...(pair.compared ? [["1 ", html("bdi", null, pair.names[0])], ["2 ", html("bdi", null, pair.names[1])]] : [["Links"]]),
      ...(pair.hasGold ? [["Gold"]] : []), ...(some ? [["What decided"]] : [])];
    const body = rows.map((seen) => {
      const { cell, first, second } = seen, one = why.get(`${cell.i}-${cell.j}`);
      return html("tr", { "data-s": cell.i, "data-t": cell.j, "data-l": "" },
        html("th", { scope: "row" }, html("bdi", null, pair.source[cell.i]), " \u2014 ", html("bdi", null, pair.target[cell.j])),
        html("td", null, verdict(pair, cell, first, cell.p)), pair.compared ? html("td", null, verdict(pair, cell, second, cell.q)) : null,
        pair.hasGold ? html("td", null, cell.gold || "no link") : null, some ? (one ? reasons(one) : html("td")) : null);
    });
    const table = html("table", null, html("thead", null, html("tr", null, heads.map((words) => html("th", { scope: "col" }, words)))), html("tbody", null, body));
    return Object.assign(html("details", { class: "differences", open: rows.length <= 12 ? "" : null }, html("summary", null, title), html("div", { class: "sheet" }, table)), { finish() {} });
  }

  return { html, svg, look, kept, explain, lines, grid, mark, curve, differences };
})();
