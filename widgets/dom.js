// Shared by all widgets: elements are built from data, and text only ever becomes text.
// Nothing that a document, a file name or a model says can run as HTML here.

const el = (tag, props = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...there(children));
  return node;
};
const there = (children) => children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);
const fill = (node, ...children) => node.replaceChildren(...there(children));

// To the kernel; where there is none any more, the bar must say so at once.
const say = (model, message) => {
  try {
    model.send(message);
  } catch {
    document.dispatchEvent(new CustomEvent("evalkit-lost"));
  }
};

const SLUG = {
  "Clinical Note": "note",
  "Pathology Report": "pathology",
  "Genomic Report": "genomic",
  "Radiology Report": "radiology",
  Other: "other",
};
const typeClass = (type) => `ek-type-${SLUG[type] || "unknown"}`;
const typeName = (type) => type || "cannot tell";
const pages = (start, end) => (start === end ? `page ${start}` : `pages ${start}–${end}`);
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const clock = (iso) => (iso ? new Date(iso).toLocaleTimeString([], { hour12: false }) : "");
