// The live parts of a page: what changed comes as HTML that the server has escaped, and is merged into what stands there,
// so that focus, selection, scrolling and opened details stay.
(() => {
  const byId = (id) => document.getElementById(id);
  // A notice is told once: its address says nothing to whoever opens it again.
  if (new URLSearchParams(location.search).has("done")) history.replaceState(null, "", location.pathname);
  const path = document.body.dataset.stream;
  if (!path) return;
  const connection = byId("connection"), spoken = byId("spoken"), find = byId("find");
  const KEPT = new Set(["aria-sort", "open", "hidden"]); // What the reader did.

  // The model that a row is about. A row of the grid is named by its first cell.
  const modelOf = (row) => row.dataset.model ?? (row.matches("table.grid tbody tr") ? row.cells[0].textContent : undefined);
  // What a node is, whatever its place: two nodes with the same key are the same thing before and after an update.
  const keyOf = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return undefined;
    const named = node.dataset.key ?? (node.nodeName === "TR" ? modelOf(node) : undefined) ?? (node.id || undefined);
    if (named !== undefined) return node.nodeName + " " + named;
    return node.matches("option, button[value]") ? node.nodeName + " " + node.value : undefined;
  };
  const merge = (old, fresh) => {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!KEPT.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    children(old, fresh);
  };
  const children = (old, fresh) => {
    const before = [...old.childNodes], keyed = new Map(), others = [];
    for (const node of before) {
      const key = keyOf(node);
      if (key === undefined) others.push(node); else keyed.set(key, node);
    }
    const nodes = [...fresh.childNodes].map((node) => {
      const key = keyOf(node), known = key === undefined ? others.shift() : keyed.get(key);
      if (!known || known.nodeName !== node.nodeName) return node;
      merge(known, node);
      return known;
    });
    const kept = new Set(nodes);
    for (const node of before) if (!kept.has(node)) node.remove();
    // Rows that a reader has sorted are put in order afterwards, once.
    const sorted = old.nodeName === "TBODY" && old.parentNode.querySelector("th[aria-sort]");
    if (sorted) for (const node of nodes) { if (node.parentNode !== old) old.append(node); }
    else arrange(old, nodes);
  };

  // The models that a reader looks for, in every table that has them.
  const filter = () => {
    if (!find) return;
    const wanted = find.elements.model.value.toLowerCase(), state = find.elements.state.value;
    const rows = [...document.querySelectorAll("#leaders tr[data-model]")];
    const shown = new Set(rows.filter((row) => row.dataset.model.toLowerCase().includes(wanted) &&
      (!state || (row.dataset.states ?? "").split(" ").includes(state))).map((row) => row.dataset.model));
    for (const row of document.querySelectorAll("tr[data-model], table.grid tbody tr")) row.hidden = !shown.has(modelOf(row));
    const words = !wanted && !state ? "" : shown.size ? shown.size + " of " + rows.length + " models" : "No model fits.";
    if (find.elements.found.value !== words) find.elements.found.value = words;
  };
  if (find) {
    find.hidden = false;
    find.addEventListener("submit", (event) => event.preventDefault());
    find.addEventListener("input", (event) => {
      if (event.target.name === "order") {
        const [name, direction] = event.target.value.split(" ");
        const table = document.querySelector("#leaders table");
        if (table) {
          const headings = [...table.tHead.rows[0].cells];
          setSorted(table, headings.find((heading) => name && heading.textContent === name), direction);
        }
      }
      filter();
    });
    filter();
  }

  const say = (text, lost) => {
    if (connection.textContent !== text) connection.textContent = text;
    connection.classList.toggle("lost", lost);
  };

  const source = new EventSource(path);
  source.addEventListener("open", () => say("live", false));
  source.addEventListener("message", (event) => {
    for (const [id, html] of Object.entries(JSON.parse(event.data))) {
      const target = byId(id);
      if (!target) continue;
      const had = target.contains(document.activeElement);
      const fresh = document.createElement("template");
      fresh.innerHTML = html;
      children(target, fresh.content);
      for (const table of target.querySelectorAll("table.sortable")) sortTable(table);
      for (const told of target.querySelectorAll("[data-spoken]")) {
        if (spoken.textContent !== told.dataset.spoken) spoken.textContent = told.dataset.spoken;
      }
      // What had the focus is gone: the reader goes on from its place.
      if (had && !target.contains(document.activeElement)) {
        target.tabIndex = -1;
        target.focus({ preventScroll: true });
      }
    }
    filter();
    say("live", false);
  });
  source.addEventListener("trouble", (event) => say(event.data, true));
  source.addEventListener("over", () => { source.close(); say("over: nothing more changes", false); });
  source.addEventListener("leave", () => { source.close(); location.assign("/login?next=" + encodeURIComponent(location.pathname)); });
  source.addEventListener("error", () => {
    say(source.readyState === EventSource.CLOSED ? "not live: reload" : "no connection; trying again", true);
  });
})();
