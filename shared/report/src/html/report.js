(() => {
  const byId = (id) => document.getElementById(id);
  const index = JSON.parse(byId("index").textContent);
  const SHOWN = 100000; // Characters of a text that are shown at once: browsers stall on megabytes.

  // A text with everything visible that would steer a reader: controls, and marks that turn the direction of writing.
  const visible = (text) => text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (c) => "\u27e6U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e7");

  const element = (name, text, parent) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };

  // Filters hide rows of models, columns of tasks, and plots of tasks.
  const form = byId("filters");
  const filter = () => {
    const wanted = Object.fromEntries(new FormData(form));
    const task = wanted.task.toLowerCase(), model = wanted.model.toLowerCase();
    const shows = (data) => data.task === undefined ||
      ((!wanted.format || data.format === wanted.format) && data.task.toLowerCase().includes(task));
    for (const table of document.querySelectorAll("table.grid")) {
      const columns = [...table.tHead.rows[0].cells].map((heading) => shows(heading.dataset));
      for (const row of table.rows) {
        [...row.cells].forEach((cell, at) => { cell.hidden = !columns[at]; });
        const { family, model: name } = row.dataset;
        if (family !== undefined) {
          row.hidden = Boolean(wanted.family && family !== wanted.family) || !name.toLowerCase().includes(model);
        }
      }
    }
    for (const plot of document.querySelectorAll("details.task")) plot.hidden = !shows(plot.dataset);
  };
  if (form) {
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  // Which block holds a dialogue, and where.
  const place = (number) => {
    let first = 0;
    for (let block = 0; block < index.blocks.length; block++) {
      if (number < first + index.blocks[block]) return [block, number - first];
      first += index.blocks[block];
    }
    return null;
  };
  let opened = { block: -1, dialogues: [] };
  const open = async (number) => {
    const found = place(number);
    if (!found) return null;
    if (opened.block !== found[0]) {
      const bytes = Uint8Array.from(atob(byId("block-" + found[0]).textContent), (c) => c.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      opened = { block: found[0], dialogues: JSON.parse(await new Response(stream).text()) };
    }
    return opened.dialogues[found[1]];
  };

  const text = (parent, heading, content) => {
    element("h3", heading, parent);
    const shown = element("pre", undefined, parent);
    let at = 0;
    const more = element("button", undefined, parent);
    more.type = "button";
    more.className = "more";
    const next = () => {
      shown.append(visible(content.slice(at, at + SHOWN)));
      at += SHOWN;
      more.hidden = at >= content.length;
      more.textContent = "show more (" + Math.max(content.length - at, 0) + " characters left)";
    };
    more.addEventListener("click", next);
    next();
  };

  // Lines of a unified diff in their colours.
  const diff = (parent, heading, content) => {
    element("h3", heading, parent);
    const shown = element("pre", undefined, parent);
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
    const viewer = byId("viewer");
    const [column, task, line] = index.dialogues[number];
    viewer.replaceChildren();
    element("h3", visible(index.models[column] + " / " + index.tasks[task] + " / " + line[1]), viewer);
    element("p", "case " + visible(line[0]) + ", " + (line[3] === null ? "score " + line[2] : "no score: " + line[3]), viewer);
    const found = await open(line[6]);
    if (!found) {
      element("p", "The report holds no text of this dialogue.", viewer);
      return;
    }
    if (found.system) text(viewer, "System", found.system);
    found.rounds.forEach((round, at) => {
      text(viewer, "Prompt " + (at + 1) + (round.kind ? " (" + round.kind + ")" : ""), round.prompt);
      if (round.reasoning) text(viewer, "Reasoning " + (at + 1), round.reasoning);
      text(viewer, "Answer " + (at + 1), round.answer);
    });
    if (found.message) text(viewer, "Why there is no score", found.message);
    for (const [path, content] of diffs(found.infos, "")) diff(viewer, "Difference: " + visible(path), content);
    text(viewer, "Scores", JSON.stringify(found.scores, null, 2));
    text(viewer, "Infos", JSON.stringify(found.infos, null, 2));
    viewer.scrollIntoView({ block: "start" });
  };

  const list = (column, task) => {
    const target = byId("list");
    target.replaceChildren();
    byId("viewer").replaceChildren();
    byId("none").hidden = true;
    element("h3", visible(index.models[column] + " / " + index.tasks[task]), target);
    const items = element("ul", undefined, target);
    index.dialogues.forEach(([c, t, line], number) => {
      if (c !== column || t !== task) return;
      const score = line[3] === null ? (line[2] === null ? "no headline" : line[2].toFixed(3)) : line[3];
      const words = line[1] + ": " + score + ", case " + visible(line[0]) + ", " + line[4] + (line[4] === 1 ? " answer" : " answers");
      const button = element("button", words, element("li", undefined, items));
      button.type = "button";
      button.addEventListener("click", () => show(number));
    });
    byId("dialogues").scrollIntoView({ block: "start" });
  };

  const follow = () => {
    const found = /^#d\/(\d+)\/(\d+)$/.exec(location.hash);
    if (found && Number(found[1]) < index.models.length && Number(found[2]) < index.tasks.length) {
      list(Number(found[1]), Number(found[2]));
    }
  };
  addEventListener("hashchange", follow);
  follow();
})();
