// Filters hide rows of models and tasks, columns of tasks, and marks and plots of them, in everything below.
const FORMATS = ["turtle", "jsonld", "xml", "nt"];
const formatOf = (task) => FORMATS.find((format) => task.split("-").includes(format)) || "";
const families = new Map(index.models.map((model, at) => [visible(model), index.families[at]]));
const tasks = new Set(index.tasks.map(visible));

const wanted = { family: "", format: "", task: "", model: "" };
const fitsModel = (name) =>
  name.toLowerCase().includes(wanted.model) && (!wanted.family || families.get(name) === wanted.family);
// A row about both formats of a task names neither, and fits any.
const fitsTask = (label) => label.toLowerCase().includes(wanted.task) &&
  (!wanted.format || !tasks.has(label) || formatOf(label) === wanted.format);
// The name of a column; a heading may say more behind it.
const columnOf = (heading) => (heading.querySelector("button")?.firstChild ?? heading).textContent.trim();
const fitsHeading = (heading) => !tasks.has(columnOf(heading)) || fitsTask(columnOf(heading));

const filterTable = (table) => {
  const headings = [...table.tHead.rows[0].cells];
  const place = (name) => headings.findIndex((heading) => columnOf(heading) === name);
  const model = place("model"), task = place("task");
  const columns = headings.map(fitsHeading);
  headings.forEach((heading, at) => { heading.hidden = !columns[at]; });
  for (const row of table.tBodies[0].rows) {
    const text = (at) => row.cells[at].textContent;
    row.hidden = (model >= 0 && !fitsModel(text(model))) || (task >= 0 && !fitsTask(text(task)));
    [...row.cells].forEach((cell, at) => { cell.hidden = !columns[at]; });
  }
};

const hide = (mark, hidden) => mark.toggleAttribute("hidden", hidden);

const filterForm = byId("filters");
const filter = () => {
  const given = Object.fromEntries(new FormData(filterForm));
  for (const key of Object.keys(wanted)) wanted[key] = given[key] || "";
  wanted.task = wanted.task.toLowerCase();
  wanted.model = wanted.model.toLowerCase();
  for (const table of document.querySelectorAll("table.sortable")) filterTable(table);
  for (const mark of document.querySelectorAll("svg [data-model]")) hide(mark, !fitsModel(mark.dataset.model));
  for (const plot of document.querySelectorAll("details.task")) plot.hidden = !fitsTask(plot.dataset.task);
  const models = [...families.keys()].filter(fitsModel).length, shown = [...tasks].filter(fitsTask).length;
  const some = Object.values(wanted).some(Boolean);
  byId("fits").textContent = !some ? ""
    : models === 0 || shown === 0 ? "Nothing fits: " + (models === 0 ? "no model" : "no task") + " has all that is chosen."
    : models + " of " + families.size + " models and " + shown + " of " + tasks.size +
      " tasks fit. Means over tasks, intervals and ranks stay those of all tasks and models.";
};
if (filterForm) {
  filterForm.addEventListener("input", filter);
  filterForm.addEventListener("reset", () => setTimeout(() => { filter(); filterForm.dispatchEvent(new Event("filtered")); }));
  filterForm.addEventListener("input", () => filterForm.dispatchEvent(new Event("filtered")));
  filterForm.addEventListener("submit", (event) => event.preventDefault());
  filter();
}
