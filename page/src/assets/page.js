// The live parts of a page: what changed comes as HTML that the server has escaped, and is merged into what stands there,
// so that focus, selection, scrolling and opened details stay.
(() => {
  const path = document.body.dataset.stream;
  if (!path) return;
  const byId = (id) => document.getElementById(id);
  const connection = byId("connection"), spoken = byId("spoken");
  const KEPT = new Set(["aria-sort", "open"]); // What the reader did.

  const merge = (old, fresh) => {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
      old.replaceWith(fresh);
      return;
    }
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
    const before = [...old.childNodes], after = [...fresh.childNodes];
    after.forEach((node, at) => { if (at < before.length) merge(before[at], node); else old.append(node); });
    for (const node of before.slice(after.length)) node.remove();
  };

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
      const fresh = document.createElement("template");
      fresh.innerHTML = html;
      children(target, fresh.content);
      for (const table of target.querySelectorAll("table.sortable")) sortTable(table);
      for (const told of target.querySelectorAll("[data-spoken]")) {
        if (spoken.textContent !== told.dataset.spoken) spoken.textContent = told.dataset.spoken;
      }
    }
    say("live", false);
  });
  source.addEventListener("trouble", (event) => say(event.data, true));
  source.addEventListener("over", () => { source.close(); say("over: nothing more changes", false); });
  source.addEventListener("leave", () => { source.close(); location.assign("/login?next=" + encodeURIComponent(location.pathname)); });
  source.addEventListener("error", () => {
    say(source.readyState === EventSource.CLOSED ? "not live: reload" : "no connection; trying again", true);
  });
})();
