// The list of dialogues with search and order, and the reading of one after the other.
(() => {
  const form = byId("choose");
  if (!form) return;
  const SHOWN = 100000; // Characters of a text that are shown at once: browsers stall on megabytes.
  const PAGE = 100; // Dialogues that the list shows at once.
  const FOUND_MAX = 500; // Dialogues that a search in texts looks for.

  // Blocks of compressed texts. The last one opened is kept: neighbours lie in it.
  const starts = [];
  index.blocks.reduce((first, count) => { starts.push(first); return first + count; }, 0);
  const blockOf = (number) => {
    let low = 0, high = starts.length;
    while (high - low > 1) { const middle = (low + high) >> 1; if (starts[middle] <= number) low = middle; else high = middle; }
    return starts.length && number < starts[low] + index.blocks[low] ? low : -1;
  };
  let opened = { block: -1, dialogues: [] };
  const open = async (number) => {
    const block = blockOf(number);
    if (block < 0) return null;
    if (opened.block !== block) {
      const bytes = Uint8Array.from(atob(byId("block-" + block).textContent), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      opened = { block, dialogues: JSON.parse(await new Response(stream).text()) };
    }
    return opened.dialogues[number - starts[block]];
  };

  // The list.
  const list = byId("list"), viewer = byId("viewer"), found = byId("found");
  let chosen = [], shown = 0, reading = -1, search = 0;
  const models = index.models.map(visible), tasks = index.tasks.map(visible);
  const value = (line) => line[3] !== null || line[2] === null ? -1 : line[2];
  const said = (line) => line[3] !== null ? visible(line[3]) : line[2] === null ? "no headline" : line[2].toFixed(3);
  const name = (number) => {
    const [column, task, line] = index.dialogues[number];
    return models[column] + " / " + tasks[task] + " / " + line[1];
  };

  const more = () => {
    const items = list.querySelector("ul");
    for (const number of chosen.slice(shown, shown + PAGE)) {
      const line = index.dialogues[number][2];
      const words = name(number) + ": " + said(line) + ", case " + visible(line[0]) + ", " + line[4] + (line[4] === 1 ? " answer" : " answers");
      button(words, element("li", undefined, items), () => show(number));
    }
    shown = Math.min(shown + PAGE, chosen.length);
    list.querySelector(".more").hidden = shown >= chosen.length;
  };

  const hasText = (value, words) => typeof value === "string" ? value.toLowerCase().includes(words)
    : value !== null && typeof value === "object" && Object.values(value).some((part) => hasText(part, words));

  const choose = async () => {
    const mine = ++search;
    const { column, task, only, order, words: typed, texts } = Object.fromEntries(new FormData(form));
    const words = typed.toLowerCase();
    const fits = (number) => {
      const [c, t, line] = index.dialogues[number];
      return (!column || c === Number(column)) && (!task || t === Number(task)) && fitsModel(models[c]) && fitsTask(tasks[t]) &&
        (only !== "failed" || line[3] !== null || line[2] === null) && (only !== "short" || value(line) < 1);
    };
    const told = (number) => {
      const line = index.dialogues[number][2];
      return (name(number) + " " + line[0] + " " + (line[3] || "")).toLowerCase().includes(words);
    };
    let numbers = [...index.dialogues.keys()].filter(fits);
    if (words && texts) {
      const hits = [];
      for (const number of numbers) {
        if (told(number) || hasText(await open(index.dialogues[number][2][6]), words)) hits.push(number);
        if (mine !== search) return;
        if (hits.length >= FOUND_MAX) break;
        if (number % 500 === 0) {
          found.textContent = "Searching: " + hits.length + " found so far.";
          await new Promise((resolve) => setTimeout(resolve));
        }
      }
      numbers = hits;
    } else if (words) numbers = numbers.filter(told);
    if (order) {
      const by = (a, b) => value(index.dialogues[a][2]) - value(index.dialogues[b][2]);
      numbers.sort(order === "worst" ? by : (a, b) => by(b, a));
    }
    chosen = numbers;
    shown = 0;
    found.textContent = chosen.length === 0 ? "No dialogue fits."
      : chosen.length + " of " + index.dialogues.length + " dialogues" + (texts && words && chosen.length >= FOUND_MAX ? ", the search stopped there" : "") + ".";
    list.replaceChildren(element("ul"), button("show more", undefined, more));
    list.lastChild.className = "more";
    more();
  };

  // Reading.
  const text = (parent, heading, content) => {
    element("h3", heading, parent);
    const shown = element("pre", undefined, parent);
    shown.tabIndex = 0;
    let at = 0;
    const next = () => {
      shown.append(visible(content.slice(at, at + SHOWN)));
      at += SHOWN;
      rest.hidden = at >= content.length;
      rest.textContent = "show more (" + Math.max(content.length - at, 0) + " characters left)";
    };
    const rest = button("", parent, next);
    rest.className = "more";
    next();
  };

  // Lines of a unified diff in their colours.
  const diff = (parent, heading, content) => {
    element("h3", heading, parent);
    const shown = element("pre", undefined, parent);
    shown.tabIndex = 0;
    for (const line of content.slice(0, SHOWN).split("\n")) {
      const part = element("span", visible(line) + "\n", shown);
      if (line.startsWith("+")) part.className = "add";
      if (line.startsWith("-")) part.className = "del";
    }
  };
  const diffs = (infos, path) => {
    if (infos === null || typeof infos !== "object") return [];
    return Object.entries(infos).flatMap(([key, value]) => {
      const here = path ? path + "." + key : key;
      return /diff/i.test(key) && typeof value === "string" && value ? [[here, value]] : diffs(value, here);
    });
  };

  const show = async (number) => {
    reading = number;
    const at = chosen.indexOf(number), line = index.dialogues[number][2];
    viewer.replaceChildren();
    element("h3", name(number), viewer);
    const steps = element("p", undefined, viewer);
    steps.className = "steps";
    const step = (words, to) => { button(words, steps, () => show(chosen[to])).disabled = chosen[to] === undefined; };
    step("Previous", at < 0 ? chosen.length : at - 1);
    step("Next", at < 0 ? chosen.length : at + 1);
    element("span", at < 0 ? "" : (at + 1) + " of " + chosen.length + " in the list", steps);
    element("p", "case " + visible(line[0]) + ", " + (line[3] === null ? "score " : "no score: ") + said(line), viewer);
    history.replaceState(null, "", "#o/" + number);
    const held = await open(line[6]);
    if (reading !== number) return;
    if (!held) {
      element("p", "The report holds no text of this dialogue.", viewer);
    } else {
      if (held.system) text(viewer, "System", held.system);
      held.rounds.forEach((round, at) => {
        text(viewer, "Prompt " + (at + 1) + (round.kind ? " (" + round.kind + ")" : ""), round.prompt);
        if (round.reasoning) text(viewer, "Reasoning " + (at + 1), round.reasoning);
        text(viewer, "Answer " + (at + 1), round.answer);
      });
      if (held.message) text(viewer, "Why there is no score", held.message);
      for (const [path, content] of diffs(held.infos, "")) diff(viewer, "Difference: " + visible(path), content);
      text(viewer, "Scores", JSON.stringify(held.scores, null, 2));
      text(viewer, "Infos", JSON.stringify(held.infos, null, 2));
    }
    viewer.focus({ preventScroll: true });
    viewer.scrollIntoView({ block: "start" });
  };

  const set = (name, to) => { form.elements[name].value = to; };
  const follow = async () => {
    const cell = /^#d\/(\d+)\/(\d+)$/.exec(location.hash), one = /^#o\/(\d+)$/.exec(location.hash);
    if (cell && Number(cell[1]) < models.length && Number(cell[2]) < tasks.length) {
      form.reset();
      set("column", cell[1]);
      set("task", cell[2]);
      viewer.replaceChildren();
      await choose();
      byId("dialogues").scrollIntoView({ block: "start" });
    } else if (one && Number(one[1]) < index.dialogues.length) {
      await choose();
      await show(Number(one[1]));
    }
  };
  form.hidden = false;
  byId("none").hidden = true;
  form.addEventListener("input", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  if (filterForm) filterForm.addEventListener("filtered", choose);
  addEventListener("hashchange", follow);
  choose().then(follow);
})();
