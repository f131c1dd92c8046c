"use strict";
// Sorting: a heading sorts by the values of its column, a second time the other way round.
const sortTable = (table) => {
  const heading = table.tHead.querySelector("th[aria-sort]");
  if (!heading) return;
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
  body.append(...rows.map((pair) => pair[1]));
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("table.sortable thead button");
  if (!button) return;
  const heading = button.parentElement, before = heading.getAttribute("aria-sort");
  const descending = before ? before === "ascending" : heading.classList.contains("number");
  for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  sortTable(heading.closest("table"));
});
