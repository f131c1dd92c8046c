"use strict";
// Tables of a report, and of a page that moves.
// Puts nodes into an order. The one with the focus is not moved but the others around it: a node that is moved loses the focus.
const arrange = (parent, nodes) => {
  const focus = document.activeElement;
  const pivot = nodes.findIndex((node) => node.contains(focus) && node.parentNode === parent);
  let next = pivot < 0 ? null : nodes[pivot];
  for (let at = pivot - 1; at >= 0; at--) {
    if (nodes[at].nextSibling !== next || nodes[at].parentNode !== parent) parent.insertBefore(nodes[at], next);
    next = nodes[at];
  }
  let last = pivot < 0 ? null : nodes[pivot];
  for (let at = pivot + 1; at < nodes.length; at++) {
    const place = last ? last.nextSibling : parent.firstChild;
    if (nodes[at] !== place) parent.insertBefore(nodes[at], place);
    last = nodes[at];
  }
};
// Sorting: a heading sorts by the values of its column, a second time the other way round. Without a sorted heading, rows that
// know their place go there.
const sortTable = (table) => {
  const heading = table.tHead.querySelector("th[aria-sort]");
  if (!heading) {
    const known = [...table.tBodies[0].rows].filter((row) => row.dataset.place !== undefined);
    if (known.length) arrange(table.tBodies[0], known.sort((a, b) => a.dataset.place - b.dataset.place));
    return;
  }
  const column = heading.cellIndex, numeric = heading.classList.contains("number");
  const descending = heading.getAttribute("aria-sort") === "descending";
  const value = (row) => {
    const cell = row.cells[column];
    if (!numeric) return cell.textContent;
    return cell.dataset.v === undefined ? -Infinity : Number(cell.dataset.v);
  };
  const compare = (a, b) => numeric ? a[0] - b[0] : a[0].localeCompare(b[0]);
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [value(row), row]);
  rows.sort((a, b) => descending ? compare(b, a) : compare(a, b));
  arrange(body, rows.map((pair) => pair[1]));
};
const setSorted = (table, heading, direction) => {
  for (const other of table.tHead.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
  if (heading) heading.setAttribute("aria-sort", direction);
  sortTable(table);
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("table.sortable thead button");
  if (!button) return;
  const heading = button.parentElement, before = heading.getAttribute("aria-sort");
  const descending = before ? before === "ascending" : heading.classList.contains("number");
  setSorted(heading.closest("table"), heading, descending ? "descending" : "ascending");
});
