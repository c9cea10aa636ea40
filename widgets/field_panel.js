// The fields of reports and forms. The kernel checks the format of a value (`field_check`). A value that is being typed
// stays in its line when the rest is redrawn.

const TYPING = 200;
const MODES = { // message, and the name of what is typed in it
  value: ["field_value", "text"], new: ["field_value", "text"], rename: ["entry_rename", "name"], remove: ["entry_remove", "reason"],
};
const MARKS = { found: "✓", not_present: "∅", ambiguous: "?" };

function render({ model, el: root }) {
  root.classList.add("ek", "ek-fields");
  let drawnToken = null;
  let drawnFor = null;
  let editing = null; // the field whose value is being typed; for a new entry, the repeated field
  let mode = "value"; // what is typed: see MODES
  let startText = "";
  const rows = new Map(); // item → {node, said, item}
  const feet = new Map(); // repeated field → {node, item of its first entry}
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
  const question = el("p", { class: "ek-muted" });
  const line = el("div", { class: "ek-typing" }, question, input, verdict,
    el("div", { class: "ek-row" },
      el("button", { type: "button", class: "ek-primary", onclick: () => keep() }, "Keep", kbd("⏎")),
      el("button", { type: "button", onclick: () => leave() }, "Leave as it was", kbd("Esc"))));
  // A new entry is named in messages by the last entry of its repeated field.
  const sentName = () => (mode === "new" ? feet.get(editing).item.name : editing);
  const isChecked = () => (mode === "new" ? !feet.get(editing).item.entry_hint || input.value.includes(":") : mode === "value");
  const check = () => { if (editing && isChecked()) ask("field_check", { field: sentName(), text: input.value, is_new: mode === "new" }); };
  // From Enter until the kernel has saved or refused the value, keys do not change it; they are handled afterwards.
  const keep = () => {
    clearTimeout(typing);
    if (!editing) return;
    input.readOnly = true;
    const said = model.get("checked");
    const isOfThis = said.field === sentName() && said.text === input.value;
    const [action, name] = MODES[mode];
    send(action, {
      field: sentName(), [name]: input.value, is_new: mode === "new",
      confirmed: isOfThis && said.is_asked ? said.value : null, ...(isOfThis ? said.place : {}),
    });
  };
  const release = () => { input.readOnly = false; };
  model.on("change:answered", () => { if (!("busy" in root.dataset)) release(); });
  document.addEventListener("evalkit-slow", release); // the answer may never come: permit sending the value again
  const open = (name, as = "value", text = null) => {
    if (model.get("is_locked")) return;
    editing = name;
    mode = as;
    release();
    const item = as === "new" ? feet.get(name).item : rows.get(name).item;
    startText = as === "value" ? values()[name].value : as === "rename" ? name.split(".").slice(2).join(".") : "";
    input.value = text === null ? startText : text;
    question.textContent = {
      value: "", new: item.entry_hint ? `Name, a colon, and the value: ${item.entry_hint}` : `Another entry of ${item.group_label}`,
      rename: "The entry's right name", remove: "Why is this entry wrong?",
    }[as];
    input.setAttribute("aria-label", as === "value" ? `value of ${item.label}` : question.textContent);
    input.setAttribute("aria-describedby", "ek-field-check");
    if (text === null) ask("field_edit", { field: sentName(), is_open: true });
    update();
    tellCheck();
    reveal();
    input.focus();
    input.select();
  };
  const close = (to = editing) => {
    const name = to;
    const hadFocus = line.contains(document.activeElement); // if not, the expert is typing elsewhere by now
    clearTimeout(typing);
    editing = null;
    input.blur();
    update();
    if (hadFocus) rows.get(name)?.node.focus({ preventScroll: true });
  };
  const leave = () => {
    if (input.readOnly) return; // the value was sent already
    if (editing) ask("field_edit", { field: sentName(), is_open: false });
    close();
  };
  const tellCheck = () => {
    const said = model.get("checked");
    const isOfThis = editing && said.field === sentName() && said.text === input.value && !said.is_kept;
    const problem = isOfThis ? said.problem : "";
    const isChanged = isOfThis && !problem && said.value !== said.typed;
    verdict.textContent = problem || (isChanged ? `${said.typed} → ${said.value}${said.is_asked ? ". Press Enter again to keep it." : ""}` : "");
    verdict.className = `ek-check ${problem ? "ek-check-wrong" : ""}`;
    if (problem) input.setAttribute("aria-invalid", "true"); else input.removeAttribute("aria-invalid");
    if (verdict.textContent || mode === "new") line.scrollIntoView({ block: "nearest" });
  };
  model.on("change:checked", () => {
    const said = model.get("checked");
    if (editing && said.is_kept && said.field === sentName()) {
      const isNew = mode === "new";
      close(isNew ? said.key : editing);
      if (isNew) select(said.key);
    } else if (said.place?.page && !said.is_kept && rows.has(said.field) && (!editing || (editing === said.field && input.value !== said.text))) {
      open(said.field, "value", said.text); // selected on the page, and not kept yet
    } else tellCheck();
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
  const tags = (issues) => issues.map((one) => severityTag(one.severity));

  const issueOf = (issue, isOpen, looked = null) => {
    const note = model.get("notes")[issue.issue_id];
    return el("div", { class: "ek-field-issue" },
      el("p", {}, severityTag(issue.severity), ` ${issue.message}`, looked),
      issue.verdict ? el("p", { class: `ek-verdict ek-verdict-${issue.verdict}`, text: issue.verdict_words }) : null,
      issue.detail ? el("p", { class: "ek-muted", text: issue.detail }) : null,
      issue.fix ? el("p", { class: "ek-muted", text: `Suggested: ${issue.fix}` }) : null,
      note ? el("p", { class: "ek-muted", text: `Your note: ${note}` }) : null,
      isOpen ? verdictButtons(issue.issue_id, (model.get("verdicts")[issue.issue_id] || {}).verdict, send, model.get("is_locked"), issue.answers) : null);
  };

  const choices = (item, now) => {
    const locked = model.get("is_locked");
    const button = (to, text, letter) => el("button", {
      "data-key": letter, "data-decides": "", "aria-pressed": now.status === to, class: now.status === to ? "ek-on" : "", disabled: locked,
      onclick: (event) => { event.stopPropagation(); status(item.name, to); },
    }, text, kbd(letter));
    const entryButton = (as, text) => el("button", {
      disabled: locked, "data-focus": `${as} ${item.name}`, onclick: (event) => { event.stopPropagation(); open(item.name, as); },
    }, text);
    if (now.is_removed) return el("div", { class: "ek-row ek-choices" }, button("found", "Restore", "y"));
    return el("div", { class: "ek-row ek-choices", role: "group", "aria-label": `what ${item.label} is` },
      el("button", { "data-key": "Enter", disabled: locked, onclick: (event) => { event.stopPropagation(); open(item.name); } }, "Edit", kbd("⏎")),
      button("found", "Found", "y"), button("not_present", "Not present", "m"), button("ambiguous", "Ambiguous", "a"),
      item.is_entry ? [entryButton("rename", "Rename"), entryButton("remove", "Delete")] : null);
  };

  // Where the report speaks of the field, each place shown on its page by a click; then its readings as answers.
  const placesOf = (item) => (item.places.length ? el("div", { class: "ek-places" },
    el("p", { class: "ek-muted", text: `The document states this in ${item.places.length} places:` }),
    el("ul", {}, item.places.map((place, number) => el("li", {}, el("button", {
      type: "button", class: "ek-link", "data-focus": `place ${number} ${item.name}`,
      onclick: (event) => { event.stopPropagation(); send("field_place", { field: item.name, place: number }); },
    }, `page ${place.page}`), ": ", el("b", { text: place.value }), " · ", el("span", { class: "ek-words", text: `“${place.quote}”` }))))) : null);
  const readingsOf = (item, now) => (item.readings.length > 1 ? el("div", { class: "ek-row ek-choices", role: "group", "aria-label": `which value of ${item.label} is right` },
    el("span", { class: "ek-muted", text: "Which is right?" }), item.readings.map((reading, number) => el("button", {
      type: "button", "data-key": number < 9 ? String(number + 1) : null, "data-decides": "", "data-focus": `reading ${number} ${item.name}`,
      disabled: model.get("is_locked"), "aria-pressed": now.status === "found" && now.value === reading,
      class: now.status === "found" && now.value === reading ? "ek-on" : "",
      onclick: (event) => { event.stopPropagation(); send("field_reading", { field: item.name, reading: number }); },
    }, reading, number < 9 ? kbd(String(number + 1)) : null))) : null);

  const fillRow = (row) => {
    const { item, node } = row;
    const isOpen = model.get("selected") === item.name;
    const isTyped = editing === item.name && mode !== "new";
    const now = values()[item.name];
    const isSeen = model.get("seen").includes(item.name);
    const isWanted = model.get("wanted").includes(item.name);
    const said = JSON.stringify([isOpen, isTyped, now, isSeen, isWanted, isOpen && model.get("place"), model.get("is_locked"),
      item.issues.map((one) => [model.get("verdicts")[one.issue_id], model.get("notes")[one.issue_id]])]);
    if (row.said === said) return;
    row.said = said;
    node.className = `ek-field${isOpen ? " ek-selected" : ""}${isWanted ? " ek-wanted" : ""}${now?.is_removed ? " ek-removed" : ""}`;
    if (isOpen) node.setAttribute("aria-current", "true"); else node.removeAttribute("aria-current");
    const looked = isSeen ? el("span", { class: "ek-seen", text: " seen" }) : isWanted ? el("span", { class: "ek-must", text: " look here" }) : null;
    if (!item.is_field) { // an issue about the whole report or form
      node.setAttribute("aria-label", `${SEVERITIES[item.issues[0].severity]}: ${item.issues[0].message}${isWanted ? ", must be looked at" : ""}`);
      fill(node, issueOf(item.issues[0], isOpen, looked), isOpen ? el("p", { class: "ek-muted ek-place", text: model.get("place") }) : null);
      return;
    }
    const told = now.status === "found" ? now.value : now.value ? `${now.words}, perhaps ${now.value}` : now.words;
    node.setAttribute("aria-label", [`${item.label}: ${told}`, now.is_yours ? "yours" : "",
      ...item.issues.map((one) => SEVERITIES[one.severity]), isWanted ? "must be looked at" : isSeen ? "seen" : ""].filter(Boolean).join(", "));
    fill(node,
      el("div", { class: "ek-field-line" },
        el("span", { class: "ek-field-label" }, item.label, item.location ? el("small", { class: "ek-muted", text: ` ${item.location}` }) : null, looked),
        el("span", { class: "ek-field-value" },
          now.value ? el("span", { class: now.status === "found" ? "ek-words" : "ek-words ek-doubted", text: now.value }) : null,
          el("span", { class: `ek-status ek-status-${now.status}` }, el("i", { "aria-hidden": "true", text: MARKS[now.status] }),
            now.status === "found" && !isOpen ? "" : ` ${now.words}`))),
      now.is_yours || (item.issues.length && !isOpen) ? el("div", { class: "ek-field-tags" },
        now.is_yours ? el("span", { class: "ek-yours", text: item.is_added ? "added by you" : `your value; the program's: ${item.agent}` }) : null,
        isOpen ? null : tags(item.issues)) : null,
      isOpen ? el("div", { class: "ek-field-more" },
        el("p", { class: "ek-muted ek-place", text: [model.get("place"), item.confidence && !now.is_yours ? `The program is ${item.confidence}.` : ""].filter(Boolean).join(" ") }),
        item.raw && !item.places.length ? el("p", { class: "ek-muted" }, "On the page: ", el("span", { class: "ek-words", text: item.raw })) : null,
        item.places.length ? placesOf(item) : item.quote ? el("div", { class: "ek-quote", text: item.quote }) : null,
        isTyped || now.is_removed ? null : readingsOf(item, now),
        item.issues.map((one) => issueOf(one, one === item.issues[0])),
        isTyped ? line : choices(item, now)) : null);
  };

  // ---- the list

  const listed = () => [...root.querySelectorAll("[data-field]")].map((node) => node.dataset.field);
  const step = (by) => {
    const names = listed();
    const at = names.indexOf(model.get("selected"));
    const next = names[Math.min(Math.max(at + by, 0), names.length - 1)];
    if (next && next !== model.get("selected")) select(next);
  };
  const toWanted = () => {
    const names = listed();
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
  // The repeated field to which the key adds an entry: that of the open item, else the first of its form.
  const openGroup = () => {
    const row = rows.get(model.get("selected"));
    return feet.has(row?.item.group) ? row.item.group : [...feet.keys()].find((group) => feet.get(group).form === row?.form) || [...feet.keys()][0];
  };
  const fillFoot = ({ node, item }) => {
    const isTyped = editing === item.group && mode === "new";
    const key = openGroup() === item.group ? "+" : null;
    fill(node, isTyped ? line : el("button", {
      class: "ek-link", "data-key": key, "data-focus": `add ${item.group}`, disabled: model.get("is_locked") || Boolean(editing), onclick: () => open(item.group, "new"),
    }, `+ entry: ${item.group_label}`, key ? kbd(key) : null));
  };
  const rowOf = (item, number) => {
    const node = el("div", {
      role: "listitem", tabindex: 0, "data-field": item.name, "data-focus": `field ${item.name}`,
      onclick: (event) => { if (!event.target.closest("button, input, .ek-typing")) select(item.name); },
      onkeydown: (event) => { if (event.key === "Enter" && event.target === node && model.get("selected") !== item.name) select(item.name); },
    });
    rows.set(item.name, { node, item, form: number, said: "" });
    return node;
  };
  const wantedButton = el("button", { "data-key": "i", onclick: toWanted });

  const attempt = (one) => el("li", {}, el("b", { text: one.title }),
    one.found.length ? el("ul", {}, one.found.map((text) => el("li", { text }))) : el("p", { class: "ek-muted", text: "The checks found nothing wrong in this reading." }),
    one.feedback ? el("details", {}, el("summary", { class: "ek-muted", "data-focus": `told ${one.title}`, text: "Hints for the next reading" }),
      el("div", { class: "ek-feedback", text: one.feedback })) : null,
    one.reasoning ? el("p", { class: "ek-muted", text: `The program's reasoning: ${one.reasoning}` }) : null);
  const form = (one, number) => {
    const items = one.items.flatMap((item, at) => {
      const node = rowOf(item, number);
      if (!item.group || one.items[at + 1]?.group === item.group) return [node];
      const foot = el("div", { class: "ek-entry-foot", role: "listitem" });
      feet.set(item.group, { node: foot, item, form: number });
      return [node, foot];
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
    rows.clear();
    feet.clear();
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
        wantedButton)),
      shown.told.map((sentence) => el("p", { class: "ek-told", role: "note", text: sentence })),
      shown.refusal ? el("div", { class: "ek-refusal", role: "note", text: shown.refusal }) : null,
      shown.opinions.length ? el("div", { class: "ek-opinions" }, shown.opinions.map(opinion)) : null,
      shown.forms.map(form),
      earlierReviews(shown.earlier));
    root.scrollTop = 0;
  };

  const update = () => {
    for (const [name, now] of Object.entries(values())) { // entries that the expert added
      const foot = feet.get(now.item?.group);
      if (foot && !rows.has(name)) foot.node.before(rowOf(now.item, foot.form));
    }
    for (const [name, row] of rows) {
      if (row.item.is_field && !values()[name]) { row.node.remove(); rows.delete(name); } else fillRow(row);
    }
    feet.forEach(fillFoot);
    const wanted = model.get("wanted").length;
    wantedButton.hidden = wanted === 0;
    fill(wantedButton, `${wanted} to look at`, kbd("i"));
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
  const leaving = (event) => { if (editing && input.value !== startText) event.preventDefault(); };
  document.addEventListener("evalkit-leaving", leaving);
  const resized = new ResizeObserver(reveal);
  resized.observe(root);
  const stop = drawnOnChange(model, root, draw);
  return () => { clearTimeout(typing); document.removeEventListener("evalkit-slow", release); resized.disconnect(); document.removeEventListener("evalkit-leaving", leaving); stop(); };
}

export default { render };
