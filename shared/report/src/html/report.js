// What the parts of a report share: its data, elements, and texts as people may see them.
const byId = (id) => document.getElementById(id);
const index = JSON.parse(byId("index").textContent);

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

const button = (text, parent, act) => {
  const made = element("button", text, parent);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
};

// Paper has no folds: all are open while the page is printed.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details:not([open])")) { fold.open = true; fold.dataset.folded = ""; }
});
addEventListener("afterprint", () => {
  for (const fold of document.querySelectorAll("details[data-folded]")) { fold.open = false; delete fold.dataset.folded; }
});
