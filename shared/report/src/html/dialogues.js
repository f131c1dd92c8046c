// The table of dialogues, and the one that is read beside it. The address has what is chosen, the order, and what is open.
(async () => {
  const form = byId("choose");
  if (!form) return;
  const SHOWN = 100000; // Characters of a text that are shown at once: browsers stall on megabytes.
  const PAGE = 100; // Dialogues by which the table grows.
  const FOUND_MAX = 500; // Dialogues that a search in texts looks for.
  const SHORT = 160; // Characters of a remark that stands in a table.

  const unpack = async (id) => {
    const bytes = Uint8Array.from(atob(byId(id).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };
  const lines = await unpack("lines");

  // Blocks of compressed texts. The last one opened is kept: neighbours lie in it.
  const starts = [];
  index.blocks.reduce((first, count) => { starts.push(first); return first + count; }, 0);
  let opened = { block: -1, texts: [], dialogues: [] };
  // A block has each long text once; dialogues name it by its number.
  const restored = (value) => typeof value === "string" ? (value.startsWith("~") ? opened.texts[value.slice(1)] : value)
    : Array.isArray(value) ? value.map(restored)
    : value !== null && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, restored(part)]))
    : value;
  const open = async (number) => {
    const place = lines.places[number];
    const block = starts.findLastIndex((first) => first <= place);
    if (block < 0 || place >= starts[block] + index.blocks[block]) return null;
    if (opened.block !== block) opened = { block, ...await unpack("block-" + block) };
    return restored(opened.dialogues[place - starts[block]]);
  };

  const section = byId("dialogues"), panes = byId("reading"), list = byId("list"), viewer = byId("viewer"), found = byId("found");
  const body = list.querySelector("tbody"), headings = [...list.querySelectorAll("thead th")];
  const models = index.models.map(visible), labels = index.tasks.map(visible), names = lines.names.map(visible);
  const scoreOf = (number) => lines.scores[number];
  const reasonOf = (number) => lines.reasons[number] === null ? "" : names[lines.reasons[number]];
  const caseOf = (number) => names[lines.cases[number]];
  const nameOf = (number) => models[lines.models[number]] + " / " + labels[lines.tasks[number]] + " / " + lines.iterations[number];
  const counted = (count, what) => count + " " + what + (count === 1 ? "" : "s");

  // Numbers by which each column sorts; names have their place in the alphabet. What has no score is worse than any.
  const ranks = (texts) => {
    const sorted = [...texts.keys()].sort((a, b) => texts[a].localeCompare(texts[b])), places = [];
    sorted.forEach((at, place) => { places[at] = place; });
    return places;
  };
  const ofModels = ranks(models), ofLabels = ranks(labels), ofNames = ranks(names);
  const keys = {
    model: (number) => ofModels[lines.models[number]],
    task: (number) => ofLabels[lines.tasks[number]],
    case: (number) => ofNames[lines.cases[number]],
    number: (number) => lines.iterations[number],
    score: (number) => scoreOf(number) ?? -Infinity,
    rounds: (number) => lines.rounds[number],
    reason: (number) => lines.reasons[number] === null ? Infinity : ofNames[lines.reasons[number]],
  };
  const WORST = "score"; // The order without another one. A minus before a key turns it round.
  let sorted = WORST, chosen = [], shown = 0, reading = -1, search = 0;

  // The address. Safari takes a hundred changes in half a minute; those that it refuses are told with the next one.
  const forms = [filterForm, form];
  const address = (number) => {
    const parts = new URLSearchParams();
    for (const one of forms) for (const [name, value] of new FormData(one)) if (value) parts.set(name, value);
    if (sorted !== WORST) parts.set("sort", sorted);
    if (number >= 0) parts.set("open", number);
    return "#dialogues" + (parts.size ? "?" + parts : "");
  };
  const tell = (isNew) => {
    try { history[isNew ? "pushState" : "replaceState"](null, "", address(reading)); } catch { /* see above */ }
  };

  // The table.
  const pill = (number, parent) => {
    const score = scoreOf(number), made = element("span", score === null ? "–" : score.toFixed(3), parent);
    const full = index.headlines[lines.tasks[number]][1];
    if (score !== null) made.className = "pill h" + Math.round(Math.min(Math.max(score / full, 0), 1) * 20);
    return made;
  };
  const more = () => {
    for (const number of chosen.slice(shown, shown + PAGE)) {
      const row = element("tr", undefined, body), head = element("th", undefined, row);
      row.dataset.number = number;
      head.scope = "row";
      element("a", models[lines.models[number]], head).href = address(number);
      element("td", labels[lines.tasks[number]], row);
      element("td", caseOf(number), row).title = caseOf(number);
      element("td", lines.iterations[number], row).className = "number";
      const score = element("td", undefined, row);
      score.className = "number";
      pill(number, score);
      element("td", lines.rounds[number], row).className = "number";
      element("td", reasonOf(number), row).className = "why";
    }
    shown = Math.min(shown + PAGE, chosen.length);
    rest.hidden = shown >= chosen.length;
  };
  const rest = button("show more", list, more);
  rest.className = "more";
  const rowOf = (number) => body.querySelector('tr[data-number="' + number + '"]');
  const mark = () => {
    for (const row of body.querySelectorAll("[aria-current]")) row.removeAttribute("aria-current");
    while (reading >= 0 && !rowOf(reading) && shown <= chosen.indexOf(reading)) more();
    const row = rowOf(reading);
    if (!row) return;
    row.setAttribute("aria-current", "true");
    // Below the heading, which stays; and the page itself stays where it is.
    const top = row.offsetTop - list.querySelector("thead").offsetHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (row.offsetTop + row.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = row.offsetTop + row.offsetHeight - list.clientHeight;
  };

  const hasText = (value, words) => typeof value === "string" ? value.toLowerCase().includes(words)
    : value !== null && typeof value === "object" && Object.values(value).some((part) => hasText(part, words));
  const isFull = (number) => scoreOf(number) !== null && scoreOf(number) >= index.headlines[lines.tasks[number]][1] - 1e-9;

  const choose = async () => {
    const mine = ++search;
    const { column, label, only, words: typed, texts } = Object.fromEntries(new FormData(form));
    const words = typed.toLowerCase();
    const fitting = { "": () => true, failed: (n) => scoreOf(n) === null, short: (n) => scoreOf(n) !== null && !isFull(n), full: isFull }[only];
    const told = (number) => (nameOf(number) + " " + caseOf(number) + " " + reasonOf(number)).toLowerCase().includes(words);
    const columns = models.map((name, at) => (!column || at === Number(column)) && fitsModel(name));
    const rows = labels.map((name, at) => (!label || at === Number(label)) && fitsTask(name));
    let numbers = [...lines.models.keys()].filter((n) => columns[lines.models[n]] && rows[lines.tasks[n]] && fitting(n));
    let stopped = false;
    if (words && texts) {
      const hits = [];
      for (const number of numbers) {
        if (told(number) || hasText(await open(number), words)) hits.push(number);
        if (mine !== search) return;
        stopped = hits.length >= FOUND_MAX;
        if (stopped) break;
        if (number % 500 === 0) {
          found.textContent = "Searching: " + hits.length + " found so far.";
          await new Promise((resolve) => setTimeout(resolve));
        }
      }
      numbers = hits;
    } else if (words) numbers = numbers.filter(told);
    const key = keys[sorted.replace("-", "")], sign = sorted.startsWith("-") ? -1 : 1;
    const values = new Map(numbers.map((number) => [number, key(number)]));
    // Equal infinities have no difference.
    chosen = numbers.sort((a, b) => values.get(a) === values.get(b) ? a - b : sign * (values.get(a) - values.get(b)));
    for (const heading of headings) {
      if (heading.dataset.key === sorted.replace("-", "")) heading.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
      else heading.removeAttribute("aria-sort");
    }
    shown = 0;
    found.textContent = chosen.length === 0 ? "No dialogue fits."
      : chosen.length + " of " + lines.models.length + " dialogues" + (stopped ? ", the search stopped there" : "") + ".";
    body.replaceChildren();
    more();
    mark();
    place();
  };

  // Reading.
  const block = (parent, heading, className) => {
    const made = element("div", undefined, parent);
    made.className = "part" + (className ? " " + className : "");
    element("h4", heading, made);
    return made;
  };
  const pre = (parent, heading) => {
    const made = element("pre", undefined, parent);
    made.tabIndex = 0;
    made.setAttribute("role", "region");
    made.setAttribute("aria-label", heading);
    return made;
  };
  const text = (parent, heading, content, className) => {
    const within = block(parent, heading, className), written = pre(within, heading);
    let at = 0;
    const next = () => {
      written.append(visible(content.slice(at, at + SHOWN)));
      at += SHOWN;
      left.hidden = at >= content.length;
      left.textContent = "show more (" + Math.max(content.length - at, 0) + " characters left)";
    };
    const left = button("", within, next);
    left.className = "more";
    next();
  };
  // Lines of a unified difference in their colours.
  const difference = (parent, heading, content) => {
    const written = pre(block(parent, heading), heading);
    for (const line of content.slice(0, SHOWN).trimEnd().split("\n")) {
      const part = element("span", visible(line) + "\n", written);
      if (line.startsWith("+")) part.className = "add";
      if (line.startsWith("-")) part.className = "del";
    }
  };
  const table = (parent, label, head, rows) => {
    const around = element("div", undefined, parent), made = element("table", undefined, around);
    around.className = "scroll";
    around.tabIndex = 0;
    around.setAttribute("role", "region");
    around.setAttribute("aria-label", label);
    if (head) {
      const row = element("tr", undefined, element("thead", undefined, made));
      // A corner without a name is no heading.
      for (const name of head) {
        const cell = element(name ? "th" : "td", name, row);
        if (name) { cell.scope = "col"; cell.className = "number"; }
      }
    }
    const inside = element("tbody", undefined, made);
    for (const [name, ...cells] of rows) {
      const row = element("tr", undefined, inside);
      element("th", name, row).scope = "row";
      for (const cell of cells) element("td", cell, row).className = head ? "number" : "remark";
    }
  };

  const compared = (parent, { place, parts, reference }) => {
    for (const { what: name, expected, extracted, met, difference: lines } of parts) {
      const what = visible(name), pair = element("div", undefined, parent);
      pair.className = "pair";
      if (met) {
        text(pair, "Extracted " + what + place + ", as expected", extracted, "good");
        continue;
      }
      if (extracted === null) element("p", "Nothing was found in the answer" + place + ".", block(pair, "Extracted " + what, "bad"));
      else text(pair, "Extracted " + what + place, extracted);
      if (expected !== null) text(pair, "Expected " + what, expected);
      if (lines) difference(parent, "Difference of " + what + ": - expected, + extracted", lines);
    }
    if (reference) text(parent, "An answer with full marks", reference);
    else if (!parts.length) element("p", "Answers to this task are compared with nothing.", parent).className = "note";
  };

  const isGroup = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const shownValue = (value) => typeof value === "number" && !Number.isInteger(value) ? value.toFixed(3) : typeof value === "string" ? visible(value) : visible(JSON.stringify(value));
  // Scores, a column for each answer and for each sum of them.
  const scores = (parent, given, headline) => {
    const groups = Object.keys(given).filter((key) => isGroup(given[key])), plain = Object.keys(given).filter((key) => !isGroup(given[key]));
    const rows = [...new Set([...plain, ...groups.flatMap((group) => Object.keys(given[group]))])];
    const columns = [...(plain.length ? [given] : []), ...groups.map((group) => given[group])];
    const head = [...(plain.length ? ["score"] : []), ...groups.map((group) => /^\d+$/.test(group) ? "answer " + (Number(group) + 1) : visible(group))];
    const value = (column, row) => column[row] === undefined || isGroup(column[row]) ? "" : shownValue(column[row]);
    table(parent, "Scores", ["", ...head], rows.map((row) => [visible(row), ...columns.map((column) => value(column, row))]));
    if (headline) element("p", headline + " stands for the dialogue.", parent).className = "note";
  };
  // What evaluation noted: short remarks in a table, long ones as texts. Those of the last answer are said with it already.
  const leaves = (value, path) => isGroup(value)
    ? Object.entries(value).flatMap(([key, part]) => !path && key === "last" && value["0"] ? [] : leaves(part, path ? path + "." + key : key))
    : [[path, value]];
  const infos = (parent, given) => {
    const all = leaves(given, "").filter(([, value]) => value !== null && value !== "");
    const isLong = ([, value]) => typeof value === "string" && (value.length > SHORT || value.includes("\n"));
    const short = all.filter((leaf) => !isLong(leaf));
    if (short.length) table(parent, "Remarks", null, short.map(([path, value]) => [visible(path), shownValue(value)]));
    for (const [path, value] of all.filter(isLong)) {
      const fold = element("details", undefined, parent);
      element("summary", visible(path), fold);
      if (/diff/i.test(path)) difference(fold, visible(path), value); else text(fold, visible(path), value);
    }
  };

  const step = (by) => {
    const row = document.activeElement.closest("tr[data-number]");
    const at = chosen.indexOf(reading >= 0 ? reading : row ? Number(row.dataset.number) : -1);
    const next = chosen[Math.min(Math.max(at + by, 0), chosen.length - 1)];
    if (next === undefined) return;
    if (reading >= 0) return show(next);
    while (!rowOf(next)) more();
    rowOf(next).querySelector("a").focus();
  };
  let position;
  const place = () => {
    if (!position) return;
    const at = chosen.indexOf(reading);
    position.before.disabled = at < 0 || at === 0;
    position.after.disabled = at < 0 || at === chosen.length - 1;
    position.words.textContent = at < 0 ? "not in the table" : (at + 1) + " of " + chosen.length;
  };
  const head = (number) => {
    const bar = element("div", undefined, viewer);
    bar.className = "steps";
    position = { before: button("Previous", bar, () => step(-1)), after: button("Next", bar, () => step(1)), words: element("span", "", bar) };
    button("Close", bar, close).className = "close";
    element("h3", models[lines.models[number]] + " on " + labels[lines.tasks[number]], viewer);
    const facts = element("p", undefined, viewer), score = scoreOf(number), headline = visible(index.headlines[lines.tasks[number]][0]);
    facts.className = "facts";
    if (score !== null) { pill(number, facts); facts.append(" " + headline); } else element("b", "no score: " + (reasonOf(number) || "no headline"), facts).className = "why";
    const seconds = lines.seconds[number];
    facts.append(", case " + caseOf(number) + ", number " + lines.iterations[number] + ", " + counted(lines.rounds[number], "round") +
      (seconds === null ? "" : ", " + seconds.toFixed(1) + " s"));
    place();
  };
  const show = async (number, isKept) => {
    const isNew = reading < 0, wasInList = list.contains(document.activeElement);
    reading = number;
    panes.classList.add("open");
    viewer.hidden = false;
    viewer.replaceChildren();
    head(number);
    mark();
    if (!isKept) tell(isNew);
    const row = rowOf(number);
    if (!isNew && wasInList && row && row.checkVisibility()) row.querySelector("a").focus({ preventScroll: true });
    else viewer.focus({ preventScroll: true });
    if (isNew || panes.getBoundingClientRect().top < 0) panes.scrollIntoView({ block: "start" });
    viewer.scrollTop = 0;
    const held = await open(number);
    if (reading !== number) return;
    if (!held) return element("p", "The report holds no text of this dialogue.", viewer);
    const sides = element("div", undefined, viewer), said = element("div", undefined, sides), judged = element("div", undefined, sides);
    sides.className = "sides";
    if (held.system) text(said, "System", held.system);
    held.rounds.forEach((round, at) => {
      const which = held.rounds.length > 1 ? " " + (at + 1) : "";
      text(said, "Asked" + which + (round.kind && round.kind !== "first" ? " (" + visible(round.kind) + ")" : ""), round.prompt);
      if (round.reasoning) text(said, "Reasoning" + which, round.reasoning);
      text(said, "Answered" + which, round.answer);
    });
    if (held.message) text(judged, "Why there is no score", held.message, "bad");
    if (typeof held.compared === "string") element("p", "Expected and extracted are not shown: " + visible(held.compared) + ".", judged).className = "note";
    else if (held.compared) compared(judged, held.compared);
    const about = block(judged, "How the score came about");
    if (Object.keys(held.scores).length) scores(about, held.scores, visible(index.headlines[lines.tasks[number]][0]));
    infos(about, held.infos);
    if (!about.children[1]) about.remove();
    viewer.dataset.number = number;
  };
  const close = () => {
    const row = rowOf(reading);
    reading = -1;
    position = undefined;
    panes.classList.remove("open");
    viewer.hidden = true;
    viewer.replaceChildren();
    delete viewer.dataset.number;
    mark();
    tell();
    if (row) row.querySelector("a").focus();
    else list.focus();
  };

  list.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-number]"), heading = event.target.closest("th[data-key]");
    if (row && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      show(Number(row.dataset.number));
    } else if (heading) {
      const key = heading.dataset.key, first = heading.classList.contains("number") && key !== "score" ? "-" + key : key;
      sorted = sorted === first ? (first.startsWith("-") ? key : "-" + key) : first;
      choose();
      tell();
    }
  });
  list.addEventListener("scroll", () => {
    if (list.scrollTop + 2 * list.clientHeight > list.scrollHeight) more();
  });
  addEventListener("keydown", (event) => {
    const focus = document.activeElement, inList = list.contains(focus);
    if (event.altKey || event.ctrlKey || event.metaKey || focus.matches("input, select, textarea")) return;
    // Where something else has the focus, its keys are its own.
    if (!inList && !(reading >= 0 && (viewer.contains(focus) || focus === document.body))) return;
    const by = { j: 1, k: -1, ArrowRight: 1, ArrowLeft: -1, ...(inList ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
    if (!by && !(event.key === "Escape" && reading >= 0)) return;
    event.preventDefault();
    if (by) step(by); else close();
  });

  const follow = async () => {
    const [at, asked] = location.hash.split("?");
    if (at !== "#dialogues" || asked === undefined) return;
    const parts = new URLSearchParams(asked);
    for (const field of forms.flatMap((one) => [...one.elements]).filter((field) => field.name)) {
      if (field.type === "checkbox") field.checked = parts.has(field.name); else field.value = parts.get(field.name) || "";
      if (field.selectedIndex < 0) field.selectedIndex = 0;
    }
    const order = parts.get("sort") || WORST;
    sorted = order.replace("-", "") in keys ? order : WORST;
    filter();
    await choose();
    const number = parts.has("open") ? Number(parts.get("open")) : -1;
    if (Number.isInteger(number) && number >= 0 && number < lines.models.length) return show(number, true);
    if (reading >= 0) close();
    section.scrollIntoView({ block: "start" });
  };
  for (const part of [form, panes, byId("keys")]) part.hidden = false;
  byId("none").hidden = true;
  const changed = () => { choose(); tell(); };
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  filterForm.addEventListener("filtered", changed);
  addEventListener("hashchange", follow);
  await choose();
  await follow();
})();
