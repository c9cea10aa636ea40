// What the expert says: the type of the segment on screen, where documents begin, the overall type, notes; and the decision.

const TYPES = ["Clinical Note", "Pathology Report", "Genomic Report", "Radiology Report", "Other"];
const SHORT = { "Pathology Report": "Pathology", "Genomic Report": "Genomic", "Radiology Report": "Radiology" };
const TYPING = 300;

function render({ model, el: root }) {
  root.classList.add("ek", "ek-editor");
  const send = (action, more = {}) => say(model, { action, token: model.get("token"), ...more });

  let typing = null;
  const notes = el("textarea", { rows: 2, placeholder: "Notes for the record", "aria-label": "notes", oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(sendNotes, TYPING);
  }, onblur: () => sendNotes() });
  const sendNotes = () => {
    clearTimeout(typing);
    typing = null;
    if (notes.value !== model.get("notes")) send("notes", { text: notes.value });
  };
  const reason = el("input", { type: "text", placeholder: "Why can nobody tell?", "aria-label": "reason" });
  const asking = el("form", { class: "ek-asking", hidden: true, onsubmit: (event) => {
    event.preventDefault();
    if (reason.value.trim()) send("undeterminable", { reason: reason.value.trim() });
  } }, reason, el("button", { type: "submit", text: "Close as undeterminable" }),
  el("button", { type: "button", text: "Back", onclick: () => { asking.hidden = true; } }));

  const controls = el("div", { class: "ek-controls" });
  const decide = el("div", { class: "ek-decide" });
  const mixture = el("details", { class: "ek-mixture", ontoggle: () => { if (mixture.open) send("mixture_seen"); } });
  root.append(controls, mixture, notes, asking, decide);

  const sendShares = () => send("mixture", {
    percent: Object.fromEntries([...mixture.querySelectorAll("input")].map((one) => [one.dataset.type, Number(one.value)])),
  });

  // A double click, or a press on a page that is not painted yet, never decides twice.
  const once = (action) => (event) => {
    event.currentTarget.disabled = true;
    sendNotes();
    send(action);
  };

  const draw = () => {
    const segments = model.get("segments");
    const page = model.get("page");
    const at = segments.findIndex((one) => one.start <= page && page <= one.end);
    const current = segments[at];
    if (!current) { root.hidden = true; return; }
    root.hidden = false;
    const locked = model.get("is_locked");
    const begins = current.start === page;
    fill(controls,
      el("div", { class: "ek-row" },
        el("b", { text: `Segment ${at + 1} · ${pages(current.start, current.end)}` }),
        el("span", { class: "ek-grow" }),
        el("label", {}, "whole file ",
          el("select", { disabled: locked, "aria-label": "type of the whole document", onchange: (event) => send("dominant", { type: event.target.value }) },
            model.get("dominant") ? null : el("option", { value: "", text: "cannot tell", selected: true }),
            TYPES.map((type) => el("option", { value: type, text: type, selected: type === model.get("dominant") }))))),
      el("div", { class: "ek-row" },
        el("button", { text: begins && page > 1 ? "Same document as before" : "New document here", disabled: locked || page === 1, onclick: () => send("split", { page }) }),
        el("button", { text: "Starts here", disabled: locked || begins, onclick: () => send("start_at", { segment: at, page }) }),
        el("button", { text: "Ends here", disabled: locked || current.end === page, onclick: () => send("end_at", { segment: at, page }) })),
      el("div", { class: "ek-row ek-types", role: "group", "aria-label": "type of this segment" }, TYPES.map((type) =>
        el("button", {
          class: `${typeClass(type)}${current.type === type ? " ek-chosen" : ""}`, "aria-pressed": current.type === type,
          disabled: locked, title: model.get("definitions")[type], onclick: () => send("type", { segment: at, type }),
        }, el("span", { class: "ek-dot" }), SHORT[type] || type))));
    fill(mixture, el("summary", { text: "Shares of the whole document" }),
      model.get("mixture").map((one) => el("label", { class: "ek-share" }, one.type,
        el("input", {
          type: "number", min: 0, max: 100, step: 1, value: one.percent, disabled: locked, "data-type": one.type,
          "aria-label": `share of ${one.type} in percent`, onchange: sendShares,
        }), "%")));
    const why = model.get("why_not");
    const changed = model.get("is_changed");
    fill(decide,
      el("div", { class: "ek-row ek-state" },
        el("span", { class: why ? "ek-muted" : "ek-seen", text: why || (locked ? "" : "Everything that must be seen was on screen.") }),
        el("span", { class: "ek-grow" }),
        el("span", { class: "ek-saved", role: "status", text: model.get("saved") })),
      el("div", { class: "ek-row" },
        el("button", { class: changed ? "" : "ek-primary", text: "Validate and next", disabled: locked || Boolean(why) || changed, onclick: once("validate") }),
        el("button", { class: changed ? "ek-primary" : "", text: "Submit correction", disabled: locked || !model.get("can_correct"), onclick: once("correct") }),
        el("button", { text: "Cannot tell", disabled: locked, onclick: () => { asking.hidden = false; reason.focus(); } })),
      model.get("problem") ? el("p", { class: "ek-problem", role: "alert", text: model.get("problem") }) : null);
    notes.disabled = locked;
    if (typing === null && document.activeElement !== notes) notes.value = model.get("notes");
  };
  model.on("change:token", () => { clearTimeout(typing); typing = null; asking.hidden = true; reason.value = ""; notes.value = model.get("notes"); mixture.open = false; });
  model.on("change", draw);
  notes.value = model.get("notes");
  draw();
  return () => sendNotes();
}

export default { render };
