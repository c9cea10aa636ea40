// The fields of reports and forms. The kernel checks the format of a value (`field_check`). A value that is being typed
// stays in its line when the rest is redrawn.

const TYPING = 200;
const MARKS = { found: "✓", not_present: "∅", ambiguous: "?" };

function render({ model, el: root }) {
  root.classList.add("ek", "ek-fields");
  let drawnToken = null;
  let drawnFor = null;
  let editing = null; // the field whose value is being typed
  let isAll = false; // true while empty fields are listed too
  const rows = new Map(); // item → {node, said, item}
  const send = counted(model, root, () => drawnToken);
  const ask = (action, more) => say(model, { action, token: drawnToken, ...more }); // the keyboard does not wait for the answer

  // ---- typing a value

  let typing = null;
  const input = el("input", {
    type: "text", class: "ek-value-input", autocomplete: "off", spellcheck: false,
    oninput: () => { tellCheck(); clearTimeout(typing); typing = setTimeout(check, TYPING); },
    onkeydown: (event) => {
      if (event.isComposing || input.readOnly) return; // the key is part of a character that is being composed, or the line is locked
      // An Enter key still held since it opened the line must not save the value.
      if (event.key === "Enter") { event.preventDefault(); event.stopPropagation(); if (!event.repeat) keep(); }
      if (event.key === "Escape") { event.preventDefault(); event.stopPropagation(); leave(); }
    },
  });
  const verdict = el("p", { class: "ek-check", id: "ek-field-check", role: "status" });
  const line = el("div", { class: "ek-typing" }, input, verdict,
    el("div", { class: "ek-row" },
      el("button", { type: "button", class: "ek-primary", onclick: () => keep() }, "Keep", kbd("⏎")),
      el("button", { type: "button", onclick: () => leave() }, "Leave as it was", kbd("Esc"))));
  const check = () => { if (editing) ask("field_check", { field: editing, text: input.value }); };
  // From Enter until the kernel has saved or refused the value, keys do not change it; they are handled afterwards.
  const keep = () => {
    clearTimeout(typing);
    if (!editing) return;
    input.readOnly = true;
    send("field_value", { field: editing, text: input.value });
  };
  const release = () => { input.readOnly = false; };
  model.on("change:answered", () => { if (!("busy" in root.dataset)) release(); });
  document.addEventListener("evalkit-slow", release); // the answer may never come: permit sending the value again
  const open = (name) => {
    if (model.get("is_locked")) return;
    editing = name;
    release();
    input.value = model.get("values")[name].value;
    input.setAttribute("aria-label", `value of ${rows.get(name).item.label}`);
    input.setAttribute("aria-describedby", "ek-field-check");
    ask("field_edit", { field: name, is_open: true });
    update();
    tellCheck();
    reveal();
    input.focus();
    input.select();
  };
  const close = () => {
    const name = editing;
    const hadFocus = line.contains(document.activeElement); // if not, the expert is typing elsewhere by now
    clearTimeout(typing);
    editing = null;
    input.blur();
    update();
    if (hadFocus) rows.get(name)?.node.focus({ preventScroll: true });
  };
  const leave = () => {
    if (input.readOnly) return; // the value was sent already
    if (editing) ask("field_edit", { field: editing, is_open: false });
    close();
  };
  const tellCheck = () => {
    const said = model.get("checked");
    const isOfThis = said.field === editing && said.text === input.value && !said.is_kept;
    const problem = isOfThis ? said.problem : "";
    verdict.textContent = !isOfThis ? "" : problem || (said.value === input.value.trim() ? "The format is right." : `The format is right; saved as ${said.value}`);
    verdict.className = `ek-check ${problem ? "ek-check-wrong" : "ek-check-right"}`;
    if (problem) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
  };
  model.on("change:checked", () => {
    const said = model.get("checked");
    if (editing && said.is_kept && said.field === editing) close();
    else tellCheck();
  });

  // ---- one item

  const values = () => model.get("values");
  const select = (name) => {
    if (editing && editing !== name) { input.focus(); return; } // the typed value must be saved or discarded first
    send("select", { issue_id: name });
  };
  const status = (name, to) => (to === "found" && !values()[name].value && values()[name].status !== "found" && !agentHas(name)
    ? open(name) : send("field_status", { field: name, status: to }));
  const agentHas = (name) => rows.get(name).item.has_value;
  const tags = (issues) => issues.map((one) => el("span", { class: `ek-tag ek-${one.severity}`, text: one.severity }));

  const issueOf = (issue, isOpen, looked = null) => {
    const note = model.get("notes")[issue.issue_id];
    return el("div", { class: "ek-field-issue" },
      el("p", {}, el("span", { class: `ek-tag ek-${issue.severity}`, text: issue.severity }), ` ${issue.message}`, looked),
      issue.verdict ? el("p", { class: `ek-verdict ek-verdict-${issue.verdict}`, text: issue.verdict_words }) : null,
      issue.detail ? el("p", { class: "ek-muted", text: issue.detail }) : null,
      issue.fix ? el("p", { class: "ek-muted", text: `Suggested: ${issue.fix}` }) : null,
      note ? el("p", { class: "ek-muted", text: `Your note: ${note}` }) : null,
      isOpen ? verdictButtons(issue.issue_id, (model.get("verdicts")[issue.issue_id] || {}).verdict, send, model.get("is_locked")) : null);
  };

  const choices = (item, now) => {
    const locked = model.get("is_locked");
    const button = (to, text, letter) => el("button", {
      "data-key": letter, "aria-pressed": now.status === to, class: now.status === to ? "ek-on" : "", disabled: locked,
      onclick: (event) => { event.stopPropagation(); status(item.name, to); },
    }, text, kbd(letter));
    return el("div", { class: "ek-row ek-choices", role: "group", "aria-label": `what ${item.label} is` },
      el("button", { "data-key": "Enter", disabled: locked, onclick: (event) => { event.stopPropagation(); open(item.name); } }, "Edit", kbd("⏎")),
      button("found", "Found", "y"), button("not_present", "Not present", "m"), button("ambiguous", "Ambiguous", "a"));
  };

  const fillRow = (row) => {
    const { item, node } = row;
    const isOpen = model.get("selected") === item.name;
    const isTyped = editing === item.name;
    const now = values()[item.name];
    const isSeen = model.get("seen").includes(item.name);
    const isWanted = model.get("wanted").includes(item.name);
    const said = JSON.stringify([isOpen, isTyped, now, isSeen, isWanted, isOpen && model.get("place"), model.get("is_locked"),
      item.issues.map((one) => [model.get("verdicts")[one.issue_id], model.get("notes")[one.issue_id]])]);
    if (row.said === said) return;
    row.said = said;
    node.className = `ek-field${isOpen ? " ek-selected" : ""}${isWanted ? " ek-wanted" : ""}`;
    if (isOpen) node.setAttribute("aria-current", "true"); else node.removeAttribute("aria-current");
    const looked = isSeen ? el("span", { class: "ek-seen", text: " seen" }) : isWanted ? el("span", { class: "ek-must", text: " look here" }) : null;
    if (!item.is_field) { // an issue about the whole report or form
      node.setAttribute("aria-label", `${item.issues[0].severity}: ${item.issues[0].message}${isWanted ? ", must be looked at" : ""}`);
      fill(node, issueOf(item.issues[0], isOpen, looked), isOpen ? el("p", { class: "ek-muted ek-place", text: model.get("place") }) : null);
      return;
    }
    const told = now.status === "found" ? now.value : now.value ? `${now.words}, perhaps ${now.value}` : now.words;
    node.setAttribute("aria-label", [`${item.label}: ${told}`, now.is_yours ? "yours" : "",
      ...item.issues.map((one) => one.severity), isWanted ? "must be looked at" : isSeen ? "seen" : ""].filter(Boolean).join(", "));
    fill(node,
      el("div", { class: "ek-field-line" },
        el("span", { class: "ek-field-label" }, item.label, item.location ? el("small", { class: "ek-muted", text: ` ${item.location}` }) : null, looked),
        el("span", { class: "ek-field-value" },
          now.value ? el("span", { class: now.status === "found" ? "ek-words" : "ek-words ek-doubted", text: now.value }) : null,
          el("span", { class: `ek-status ek-status-${now.status}` }, el("i", { "aria-hidden": "true", text: MARKS[now.status] }),
            now.status === "found" && !isOpen ? "" : ` ${now.words}`))),
      now.is_yours || (item.issues.length && !isOpen) ? el("div", { class: "ek-field-tags" },
        now.is_yours ? el("span", { class: "ek-yours", text: `yours; the program: ${item.agent}` }) : null,
        isOpen ? null : tags(item.issues)) : null,
      isOpen ? el("div", { class: "ek-field-more" },
        el("p", { class: "ek-muted ek-place", text: [model.get("place"), item.confidence && !now.is_yours ? `The program is ${item.confidence}.` : ""].filter(Boolean).join(" ") }),
        item.raw ? el("p", { class: "ek-muted" }, "On the page: ", el("span", { class: "ek-words", text: item.raw })) : null,
        item.quote ? el("div", { class: "ek-quote", text: item.quote }) : null,
        item.issues.map((one) => issueOf(one, one === item.issues[0])),
        isTyped ? line : choices(item, now)) : null);
  };

  // ---- the list

  const listed = () => [...rows.values()].filter((row) => !row.node.hidden).map((row) => row.item.name);
  const step = (by) => {
    const names = listed();
    const at = names.indexOf(model.get("selected"));
    const next = names[Math.min(Math.max(at + by, 0), names.length - 1)];
    if (next && next !== model.get("selected")) select(next);
  };
  const toWanted = () => {
    const names = [...rows.keys()];
    const at = names.indexOf(model.get("selected"));
    const wanted = model.get("wanted");
    const next = wanted.find((name) => names.indexOf(name) > at) || wanted[0];
    if (next) select(next);
  };
  // Go to the first item of the next form or, backwards, of this form and then of the previous one.
  const toForm = (by) => {
    const names = listed();
    const starts = [...new Set(names.map((name) => rows.get(name).form))].map((form) => names.find((name) => rows.get(name).form === form));
    const at = names.indexOf(model.get("selected"));
    const next = by > 0 ? starts.find((name) => names.indexOf(name) > at) : starts.filter((name) => names.indexOf(name) < at).pop();
    if (next) select(next);
  };
  const more = el("button", { "data-key": "l", onclick: () => { isAll = !isAll; update(); } });
  const wantedButton = el("button", { "data-key": "i", onclick: toWanted });

  const attempt = (one) => el("li", {}, el("b", { text: one.title }),
    one.found.length ? el("ul", {}, one.found.map((text) => el("li", { text }))) : el("p", { class: "ek-muted", text: "The checks found nothing wrong in this reading." }),
    one.feedback ? el("details", {}, el("summary", { class: "ek-muted", "data-focus": `told ${one.title}`, text: "Hints for the next reading" }),
      el("div", { class: "ek-feedback", text: one.feedback })) : null,
    one.reasoning ? el("p", { class: "ek-muted", text: `The program's reasoning: ${one.reasoning}` }) : null);
  const form = (one, number) => {
    const items = one.items.map((item) => {
      const node = el("div", {
        role: "listitem", tabindex: 0, "data-field": item.name, "data-focus": `field ${item.name}`,
        onclick: (event) => { if (!event.target.closest("button, input, .ek-typing")) select(item.name); },
        onkeydown: (event) => { if (event.key === "Enter" && event.target === node && model.get("selected") !== item.name) select(item.name); },
      });
      rows.set(item.name, { node, item, form: number, said: "" });
      return node;
    });
    return el("section", { class: "ek-form", "aria-label": `${one.title}, ${one.about}` },
      el("header", {}, el("h3", { text: one.title }), el("span", { class: "ek-muted", text: one.about }),
        el("p", { class: one.is_asked ? "ek-asked" : "ek-seen", text: one.decision })),
      el("div", { role: "list", "aria-label": `fields of ${one.title}` }, items),
      one.history.length ? el("details", { class: "ek-claims" },
        el("summary", { "data-focus": `history ${number}`, text: `How it was read: ${plural(one.history.length, "reading")}` }),
        el("ol", { class: "ek-history" }, one.history.map(attempt)), el("p", { class: "ek-muted", text: one.stopped })) : el("p", { class: "ek-muted", text: one.stopped }));
  };
  const opinion = (one) => el("section", { class: "ek-opinion", "aria-label": `answer ${one.name}` },
    el("header", {}, el("b", { text: `Answer ${one.name}` }), one.overall ? el("span", { class: "ek-muted", text: one.overall }) : null),
    el("ul", {}, one.fields.map((row) => el("li", { class: row.differs ? "ek-differs" : "" }, `${row.label}: `, el("span", { class: "ek-words", text: row.value })))),
    one.notes ? el("p", { class: "ek-muted", text: one.notes }) : null,
    one.can_take ? el("button", { text: `Take answer ${one.name}`, "data-focus": `take ${one.name}`, onclick: () => send("take", { opinion: one.name }) }) : null);

  const build = (shown) => {
    drawnToken = shown.token;
    drawnFor = null;
    isReadFirst = shown.opinions.length + shown.told.length > 0;
    editing = null;
    isAll = false;
    rows.clear();
    const count = shown.forms.reduce((sum, one) => sum + one.items.length, 0);
    fill(root, closing(shown.closing),
      el("div", { class: "ek-why" }, el("h2", { text: shown.headline }),
        el("p", { class: "ek-muted", text: shown.subline }),
        el("div", { class: "ek-row ek-stepper" }, count > 1 ? [
          el("button", { "data-key": "j", "data-repeats": "", "aria-label": "next field", onclick: () => step(1) }, "Next", kbd("j")),
          el("button", { "data-key": "k", "data-repeats": "", "aria-label": "previous field", onclick: () => step(-1) }, "Previous", kbd("k"))] : null,
        shown.forms.length > 1 ? [
          el("button", { text: "↑", "data-key": "PageUp", "aria-label": "start of this form, or of the one before", title: "PageUp", onclick: () => toForm(-1) }),
          el("button", { text: "↓", "data-key": "PageDown", "aria-label": "start of the next form", title: "PageDown", onclick: () => toForm(1) })] : null,
        wantedButton, more)),
      shown.told.map((sentence) => el("p", { class: "ek-told", role: "note", text: sentence })),
      shown.refusal ? el("div", { class: "ek-refusal", role: "note", text: shown.refusal }) : null,
      shown.opinions.length ? el("div", { class: "ek-opinions" }, shown.opinions.map(opinion)) : null,
      shown.forms.map(form),
      earlierReviews(shown.earlier));
    root.scrollTop = 0;
  };

  const update = () => {
    const selected = model.get("selected");
    let hidden = 0;
    for (const row of rows.values()) {
      const { item, node } = row;
      const isEmpty = item.is_minor && !values()[item.name]?.is_yours && item.name !== selected;
      if (item.is_minor) hidden += 1;
      node.hidden = isEmpty && !isAll;
      fillRow(row);
    }
    const wanted = model.get("wanted").length;
    wantedButton.hidden = wanted === 0;
    fill(wantedButton, `${wanted} to look at`, kbd("i"));
    more.hidden = hidden === 0;
    more.setAttribute("aria-pressed", String(isAll));
    fill(more, isAll ? "Hide empty fields" : `${plural(hidden, "empty field")}`, kbd("l"));
  };

  const draw = () => {
    const shown = model.get("case");
    if (!shown.headline) { root.replaceChildren(); return; }
    if (shown.token !== drawnToken) build(shown);
    const top = root.scrollTop;
    update();
    root.scrollTop = top;
    const row = rows.get(model.get("selected"));
    if (!row) return;
    if (drawnFor !== row.item.name) {
      if (drawnFor !== null) isReadFirst = false;
      drawnFor = row.item.name;
      revealed = "";
      if (document.activeElement?.dataset.field) row.node.focus({ preventScroll: true }); // the focus follows the selection
    }
    if (revealed !== row.said) reveal();
  };
  // The open field is scrolled into view when it is opened and when it grows, but not after the expert has scrolled.
  let revealed = "";
  let isReadFirst = false; // colleagues' messages are above the open field
  const reveal = () => {
    const row = rows.get(drawnFor);
    if (!row || isReadFirst) return;
    revealed = row.said;
    const [box, view] = [row.node.getBoundingClientRect(), root.getBoundingClientRect()];
    const above = view.top + root.querySelector(".ek-why").offsetHeight + 4 - box.top;
    const below = box.bottom + 8 - view.bottom;
    if (below > 0) root.scrollTop += Math.min(below, -above);
    else if (above > 0) root.scrollTop -= above;
  };
  // Leaving the page would lose a typed value that is not saved: the browser asks first.
  const leaving = (event) => { if (editing && input.value !== values()[editing].value) event.preventDefault(); };
  document.addEventListener("evalkit-leaving", leaving);
  const resized = new ResizeObserver(reveal);
  resized.observe(root);
  const stop = drawnOnChange(model, root, draw);
  return () => { clearTimeout(typing); document.removeEventListener("evalkit-slow", release); resized.disconnect(); document.removeEventListener("evalkit-leaving", leaving); stop(); };
}

export default { render };
