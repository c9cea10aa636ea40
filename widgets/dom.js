// Shared by all widgets: elements are built from data, and all text is set as text, never parsed as HTML. So nothing that a
// document, a file name or a model says can run as code.

// What these classes show are the document's words, in whatever script: the direction follows the words.
const DOCUMENT_WORDS = /\bek-(quote|words|card-heading|value-input|file)\b/;
const el = (tag, props = {}, ...children) => {
  const node = document.createElement(tag);
  if (DOCUMENT_WORDS.test(props.class)) node.dir = "auto";
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("aria-")) { node.setAttribute(name, String(value)); continue; } // "false" has a meaning there
    if (value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...there(children));
  return node;
};
// The keyboard key that presses a button, shown on the button; hidden from screen readers.
const kbd = (text) => el("kbd", { "aria-hidden": true, text });
const there = (children) => children.flat(2).filter((child) => child !== null && child !== undefined && child !== false);
const fill = (node, ...children) => node.replaceChildren(...there(children));

// Send a message to the kernel; if the kernel is gone, the bar must show this at once.
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
const NO_TYPE = ["", "cannot tell", "no form", "no box"];
// A site's own types have five more colours, in turn. The widgets that have the table of types share it with the others.
const OWN_COLOURS = 5;
const shareTypes = (model) => { globalThis.evalkitOwnTypes = model.get("types").map((row) => row.type).filter((type) => !SLUG[type]); return model.get("types"); };
const ownSlug = (type) => { const at = (globalThis.evalkitOwnTypes || []).indexOf(type); return at < 0 ? null : `own${at % OWN_COLOURS + 1}`; };
const typeClass = (type) => `ek-type-${SLUG[type] || ownSlug(type) || (NO_TYPE.includes(type || "") ? "unknown" : "form")}`; // a tax form's own name
const typeName = (type) => type || "cannot tell";
// The words for severities, one for each, on every screen; the kernel's are in review/case.py.
const SEVERITIES = { BLOCKER: "grave doubt", MAJOR: "doubt", MINOR: "remark" };
const severityTag = (severity) => el("span", { class: `ek-tag ek-${severity}`, text: SEVERITIES[severity] });
const pages = (start, end) => (start === end ? `page ${start}` : `pages ${start}–${end}`);
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const clock = (iso) => (iso ? new Date(iso).toLocaleTimeString([], { hour12: false }) : "");

// Build a function that sends numbered presses. While the root is marked `busy`, the keyboard waits for the answer to the
// last press. `token` names the case on screen, so that a press never applies to a case that has arrived since.
const counted = (model, root, token) => {
  let sent = model.get("answered"); // the numbers continue when the view is drawn again
  model.on("change:answered", () => { if (model.get("answered") >= sent) delete root.dataset.busy; });
  return (action, more = {}) => {
    sent += 1;
    root.dataset.busy = "";
    say(model, { action, token: token(), nth: sent, ...more });
  };
};

// Buttons for the two answers to an issue's question; a second press takes the answer back. `said` is the present verdict:
// `confirmed`, `dismissed` or nothing.
const verdictButtons = (issueId, said, send, isLocked, { change, keep }) => {
  const button = (verdict, text, letter) => el("button", {
    "data-key": letter, "data-decides": "", "aria-pressed": said === verdict, class: said === verdict ? "ek-on" : said ? "" : "ek-open", disabled: isLocked,
    onclick: (event) => { event.stopPropagation(); send("verdict", { issue_id: issueId, verdict: said === verdict ? null : verdict }); },
  }, text, kbd(letter));
  return el("div", { class: "ek-verdicts" }, button("confirmed", change, "c"), button("dismissed", keep, "x"));
};
// What two pages state, side by side: what differs is boxed, and red if it tells two patients apart.
const factTable = (pageNumbers, facts) => (facts.length
  ? el("table", { class: "ek-facts" }, el("thead", {}, el("tr", {}, el("th", {}), pageNumbers.map((page) => el("th", { text: `page ${page}` })))),
    el("tbody", {}, facts.map((fact) => el("tr", { class: fact.is_other_patient ? "ek-facts-other" : fact.differs ? "ek-facts-unlike" : "" },
      el("th", { scope: "row", text: fact.name }), fact.values.map((value) => el("td", { dir: "auto", text: value || "–" }))))))
  : null);
// How a closed case was decided; what follows beneath is what the program had said.
const closing = (shown) => (shown && shown.outcome
  ? el("section", { class: "ek-closing", "aria-label": "outcome" }, el("h2", { text: shown.outcome }),
    shown.notes ? el("p", { class: "ek-closing-notes", text: shown.notes }) : null,
    shown.changes.length ? [el("b", { text: "Changed from the program's answer:" }), el("ul", {}, shown.changes.map((text) => el("li", { text })))]
      : shown.no_change ? el("p", { text: shown.no_change }) : null,
    el("p", { class: "ek-muted", text: "What the program had said:" }))
  : null);
const earlierReviews = (reviews) => (reviews.length
  ? el("details", { class: "ek-claims" }, el("summary", { "data-focus": "earlier", text: plural(reviews.length, "earlier review") }),
    reviews.map((one) => el("p", { text: `${one.reviewer ? `${one.reviewer}, ` : ""}${one.when}: ${one.outcome}${one.notes ? `. ${one.notes}` : ""}` })))
  : null);

// Announce a trait's text to screen readers. They read changes of a permanent region, not a region that appears together
// with its text; each trait has its own region, so that no text replaces another.
const announce = (model, name) => {
  const found = document.querySelector(`.ek-announced[data-of="${name}"]`);
  const region = found || el("div", { class: "ek ek-announced", role: "status", "data-of": name });
  if (!found) document.body.append(region);
  model.on(`change:${name}`, () => { region.textContent = model.get(name); });
};

// Draw now and on every change of the model; the focus stays on the same control, identified by `data-focus` or its key.
// Between press and release of the mouse button or the space bar nothing is redrawn, because a replaced button would lose
// the click. Returns a function that stops the drawing.
const drawnOnChange = (model, root, draw) => {
  const redraw = () => {
    const held = root.contains(document.activeElement) ? document.activeElement : null;
    draw();
    if (!held) return;
    if (held.isConnected) { // it was removed and inserted again, which loses the focus: further keys would not reach it
      if (document.activeElement === document.body) held.focus({ preventScroll: true });
      return;
    }
    const [name, value] = held.dataset.focus ? ["focus", held.dataset.focus] : ["key", held.dataset.key];
    if (value) root.querySelector(`[data-${name}="${CSS.escape(value)}"]`)?.focus({ preventScroll: true });
  };
  let pressedBy = null; // "mouse" or "key"
  let isLate = false;
  const changed = () => { if (pressedBy) isLate = true; else redraw(); };
  const pressed = (event) => {
    const by = event.type === "keydown" ? "key" : "mouse";
    if (by === "key" ? event.key !== " " : event.button !== 0) return;
    if (event.target.closest("button, summary, label, tr, .ek-issue")) pressedBy = by;
  };
  const released = (event) => {
    if (event.type === "keyup" && event.key !== " ") return;
    const isOther = { keyup: "mouse", pointerup: "key" }[event.type] === pressedBy;
    if (!pressedBy || isOther) return;
    pressedBy = null;
    setTimeout(() => { // after the click
      if (!isLate || pressedBy) return;
      isLate = false;
      redraw();
    });
  };
  const PRESSES = ["pointerdown", "keydown"];
  // If a browser menu or another window takes the focus, the release is never reported.
  const RELEASES = ["pointerup", "pointercancel", "keyup", "dragend", "contextmenu", "blur"];
  PRESSES.forEach((name) => root.addEventListener(name, pressed));
  RELEASES.forEach((name) => window.addEventListener(name, released));
  model.on("change", changed);
  redraw();
  return () => {
    model.off("change", changed);
    PRESSES.forEach((name) => root.removeEventListener(name, pressed));
    RELEASES.forEach((name) => window.removeEventListener(name, released));
  };
};

// Keys that press no button with `data-key` move the page.
const MOVES = {
  ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last",
  "+": "larger", "=": "larger", "-": "smaller", 0: "fit", r: "rotate", f: "find", b: "spread", g: "sheet", z: "mark",
};
