// The expert's answer: the type of the document on screen, boundaries, flags, notes; and the decision.

const SHORT = { "Pathology Report": "Pathology", "Genomic Report": "Genomic", "Radiology Report": "Radiology" };
const FLAGS = [["other_patient", "Other patient", "P"], ["duplicate", "Duplicate", "D"], ["out_of_order", "Out of order", "O"]];
const TYPING = 300;
// Typical reasons for deferring, each with the key that defers for it while nothing is typed.
const DEFERRALS = [["7", "Pages are missing or cannot be read"], ["8", "I need the patient's other records"], ["9", "I want to ask a colleague"]];
const KINDS = ["change", "quote", "field", "vouch", "type"]; // of the lines of the record, in the order in which they are shown
const FEW = 3; // so many lines about types fit in one line, which then comes first
// Presses for which the expert must type a text: the question, and the label of the button.
const ASKED = {
  defer: ["Why can the case not be decided now?", "Defer"],
  reply: ["Your reply to your colleague", "Send reply"],
  second: ["What should the second expert look at?", "Submit and ask"],
  note: ["Note", "Keep note"],
  unmet_sums: ["The sums do not add up. Why may the template be approved all the same?", "Keep reason"],
};

function render({ model, el: root }) {
  root.classList.add("ek", "ek-editor");
  const send = counted(model, root, () => root.dataset.token);
  const types = shareTypes(model);

  let typing = null;
  const notes = el("textarea", { rows: 1, placeholder: "Notes for the record", "aria-label": "notes for the record", oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(sendNotes, TYPING);
  }, onblur: () => sendNotes(), onkeydown: (event) => { if (closes(event)) notes.blur(); } });
  const sendNotes = () => {
    clearTimeout(typing);
    typing = null;
    if (notes.value !== model.get("notes")) send("notes", { text: notes.value });
  };
  const closes = (event) => event.key === "Escape" || (event.key === "Enter" && (event.ctrlKey || event.metaKey));

  // One input line serves for the text of a decision or a note.
  let asked = null;
  let askedBy = null;
  const words = el("textarea", { rows: 2, onkeydown: (event) => {
    if (event.key === "Escape" && asked !== "note") { stopAsking(); return; }
    const chip = asked === "defer" && !words.value && DEFERRALS.find(([key]) => key === event.key);
    if (chip) { event.preventDefault(); words.value = chip[1]; answer(); return; }
    if (closes(event) || (event.key === "Enter" && !event.shiftKey && asked !== "note")) { event.preventDefault(); answer(); }
  } });
  const about = el("select", { "aria-label": "what the note is about", onchange: () => { words.value = noteOf(about.value); words.focus(); } });
  const go = el("button", { type: "button", class: "ek-primary", onclick: () => answer() });
  const chips = el("div", { class: "ek-row", role: "group", "aria-label": "typical reasons" }, DEFERRALS.map(([key, reason]) =>
    el("button", { type: "button", onclick: () => { words.value = reason; answer(); } }, reason, kbd(key))));
  const asking = el("div", { class: "ek-asking", hidden: true }, about, chips, words,
    el("div", { class: "ek-row" }, go, el("button", { type: "button", text: "Back", onclick: () => stopAsking() })));
  const noteOf = (target) => {
    const [kind, of] = target.split(" ");
    if (kind === "issue") return (model.get("issue_notes")[of] || "");
    if (kind === "page") return at(Number(of))?.note || "";
    return notes.value;
  };
  const ask = (what) => {
    const again = asked === what && !asking.hidden;
    if (again) { words.focus(); return; }
    sendNotes();
    asked = what;
    askedBy = document.activeElement;
    const [question, name] = ASKED[what] || [label(`${what}_question`), label(`${what}_answer`)];
    words.placeholder = question;
    words.setAttribute("aria-label", question);
    go.textContent = name;
    about.hidden = what !== "note";
    chips.hidden = what !== "defer";
    if (what === "note") {
      const issue = model.get("issue_id");
      const position = current();
      fill(about, issue ? el("option", { value: `issue ${issue}`, text: "to this question" }) : null,
        !hasSegments() ? null : el("option", { value: `page ${model.get("page")}`, text: `to document ${position + 1}` }), el("option", { value: "record", text: "to the record" }));
      words.value = noteOf(about.value);
    } else {
      words.value = what === "unmet_sums" ? model.get("unmet_sums") : "";
    }
    asking.hidden = false;
    drawSignature();
    root.classList.add("ek-is-asking");
    words.focus();
  };
  const stopAsking = () => {
    words.blur();
    asking.hidden = true;
    root.classList.remove("ek-is-asking");
    asked = null;
    drawSignature();
    words.value = "";
    if (askedBy && askedBy !== document.body) root.querySelector(`[data-key="${askedBy.dataset.key}"]`)?.focus();
  };
  const answer = () => {
    const text = words.value.trim();
    if (asked === "note") {
      const [kind, of] = about.value.split(" ");
      if (kind === "issue") send("issue_note", { issue_id: of, text });
      else if (kind === "page") send("segment_note", { page: Number(of), text });
      else { notes.value = words.value.trim(); sendNotes(); }
      stopAsking();
    } else if (text) {
      send(asked, { reason: text });
      stopAsking();
    } else {
      words.focus();
    }
  };

  const controls = el("div", { class: "ek-controls" });
  const decide = el("div", { class: "ek-decide" });
  const signature = el("p", { id: "ek-signature", class: "ek-muted ek-signature" });
  const drawSignature = () => {
    const decision = asked === "undeterminable" ? asked : model.get("is_blind") ? "blind" : model.get("is_changed") ? "corrected" : "validated";
    signature.textContent = model.get("is_locked") ? "" : model.get("signatures")[decision] || "";
  };
  const mixture = el("details", { class: "ek-mixture", ontoggle: () => { if (mixture.open) send("mixture_seen"); } });
  // Rare controls; their keys work while they are hidden.
  const rareControls = el("div", { class: "ek-controls" });
  const rareDecisions = el("div", { class: "ek-row" });
  const rare = el("div", { class: "ek-rare", id: "ek-rare", role: "group", "aria-label": "more", hidden: true },
    rareControls, rareDecisions, el("div", { class: "ek-aside" }, mixture, notes));
  const toggleRare = () => { rare.hidden = !rare.hidden; drawDecision(model.get("is_locked")); decide.querySelector("[data-focus=more]").focus(); };
  root.append(controls, rare, asking, decide, signature);

  const sendShares = () => send("mixture", {
    percent: Object.fromEntries([...mixture.querySelectorAll("input")].map((one) => [one.dataset.type, Number(one.value)])),
  });
  const at = (page) => model.get("segments").find((one) => one.start <= page && page <= one.end);
  const hasSegments = () => model.get("has_segments");
  const label = (what) => model.get("labels")[what];
  const current = () => model.get("segments").indexOf(at(model.get("page")));

  // A double click, or a press before the next case is painted, must not decide a second time.
  let lastDecision = "";
  const once = (action) => (event) => {
    event.currentTarget.disabled = true;
    sendNotes();
    lastDecision = action;
    send(action, { anyway: Boolean(model.get("question")) });
  };

  const summary = el("summary", { text: "Shares of the whole file" });
  const drawShares = (locked) => {
    const shares = model.get("mixture");
    const inputs = [...mixture.querySelectorAll("input")];
    if (inputs.length === shares.length && inputs.includes(document.activeElement)) { // a share is being typed: do not redraw
      shares.forEach((one, number) => { if (inputs[number] !== document.activeElement) inputs[number].value = one.percent; });
      return;
    }
    fill(mixture, summary, shares.map((one) => el("label", { class: "ek-share" }, one.type,
      el("input", {
        type: "number", min: 0, max: 100, step: 1, value: one.percent, disabled: locked, "data-type": one.type,
        "data-focus": `share ${one.type}`, "aria-label": `share of ${one.type} in percent`, onchange: sendShares,
      }), "%")));
  };

  // The expert's own quotes of this document; the numbers are their positions among all quotes.
  const drawQuotes = (segment, locked) => {
    const own = model.get("quotes").map((quote, position) => ({ ...quote, position })).filter((quote) => segment.start <= quote.page && quote.page <= segment.end);
    return own.length === 0 ? null : el("div", { class: "ek-own" }, el("b", { text: `${plural(own.length, "quote")} of your own` }),
      el("ul", {}, own.map(({ page, snippet, position }) => el("li", {},
        el("button", { class: "ek-link", text: `p. ${page}`, "aria-label": `show page ${page}`, onclick: () => send("page", { page }) }),
        el("span", { class: "ek-quote", dir: "auto", text: snippet || "a box without words" }),
        el("button", { text: "Remove", disabled: locked, "data-focus": `quote ${position}`, "aria-label": `remove the quote of page ${page}`, onclick: () => send("unquote", { position }) })))));
  };

  const drawControls = (segments, at, page, locked) => {
    const segment = segments[at];
    const begins = segment.start === page;
    const next = segments[at + 1];
    const turn = (to) => send("page", { page: to });
    const bound = (key, other, name, isOff, action) => el("button", { "data-key": key, "data-decides": "", disabled: locked || isOff,
      onclick: () => send(action, { segment: at, page }) }, name, kbd(key), kbd(other));
    fill(controls,
      el("div", { class: "ek-row ek-head" },
        el("b", { text: `Document ${at + 1} of ${segments.length} · ${pages(segment.start, segment.end)}` }),
        FLAGS.filter(([flag]) => (segment.flags || []).includes(flag)).map(([, name]) => el("span", { class: "ek-flag", text: name.toLowerCase() })),
        el("span", { class: "ek-grow" }),
        el("button", { "data-key": "s", "data-decides": "", disabled: locked || page === 1, onclick: () => send("split", { page }) },
          begins && page > 1 ? "Same document as before" : "New document here", kbd("s"))),
      el("div", { class: "ek-row ek-types", role: "group", "aria-label": "type of this document" }, types.map(({ type, key, definition }) =>
        el("button", {
          class: `${typeClass(type)}${segment.type === type ? " ek-chosen" : ""}`, "aria-pressed": segment.type === type, "data-decides": "",
          "data-key": key || null, disabled: locked, title: definition, onclick: () => send("type", { page, type }),
        }, SHORT[type] || type, key ? kbd(key) : null))),
      drawQuotes(segment, locked),
      segment.note ? el("p", { class: "ek-muted ek-segment-note", dir: "auto", text: `Note: ${segment.note}` }) : null);
    fill(rareControls,
      el("div", { class: "ek-row" },
        bound("[", ",", "Starts here", begins, "start_at"), bound("]", ".", "Ends here", segment.end === page, "end_at"),
        el("button", { text: "↑", "data-key": "PageUp", "aria-label": "start of this document, or of the one before", title: "PageUp",
          disabled: page === 1, onclick: () => turn(begins ? segments[at - 1].start : segment.start) }),
        el("button", { text: "↓", "data-key": "PageDown", "aria-label": "start of the next document", title: "PageDown",
          disabled: !next, onclick: () => turn(next.start) }),
        el("select", { disabled: locked, "data-focus": "file", "aria-label": "type of the whole file", onchange: (event) => send("dominant", { type: event.target.value }) },
          model.get("dominant") ? null : el("option", { value: "", text: "File: cannot tell", selected: true }),
          types.map(({ type }) => el("option", { value: type, text: `File: ${SHORT[type] || type}`, selected: type === model.get("dominant") })))),
      el("div", { class: "ek-row", role: "group", "aria-label": "flags of this document" }, FLAGS.map(([flag, name, letter]) => {
        const on = (segment.flags || []).includes(flag);
        return el("button", {
          class: on ? "ek-flagged" : "", "aria-pressed": on, "data-key": `Shift+${letter}`, "data-decides": "", disabled: locked,
          onclick: () => send("flag", { page, flag }),
        }, name, kbd(`⇧${letter}`));
      })));
  };

  const drawDecision = (locked) => {
    drawSignature();
    const blind = model.get("is_blind");
    const awaited = "busy" in root.dataset; // an earlier press is not answered yet, so nothing can be decided now
    const why = model.get("why_not");
    const changed = model.get("is_changed");
    const open = model.get("open_doubts"); // while a doubt is open, no button stands out: the answer comes first
    const question = model.get("question");
    const record = KINDS.flatMap((kind) => model.get("record").filter((line) => line.kind === kind));
    const types = record.filter((line) => line.kind === "type");
    const lines = types.length && types.length <= FEW
      ? [{ kind: "type", text: types.map((line) => line.text).join(" · ") }, ...record.filter((line) => line.kind !== "type")] : record;
    const ready = why || (locked ? "" : blind ? "Your answer can be submitted." : open || "You have seen all that is asked about.");
    fill(decide,
      lines.length ? el("section", { class: "ek-record", "aria-label": "What will be recorded" },
        el("b", { text: "What will be recorded" }),
        el("ul", { tabindex: 0 }, lines.map((line) => el("li", { dir: "auto", class: `ek-line-${line.kind}`, title: line.text, text: line.text })))) : null,
      el("div", { class: "ek-row ek-state" },
        el("span", { class: why ? "ek-muted" : open ? "ek-open-doubts" : "ek-seen", text: ready }),
        el("span", { class: "ek-grow" }),
        el("span", { class: "ek-saved", text: model.get("saved") })),
      el("div", { class: "ek-row ek-main" },
        blind ? null : el("button", { class: changed || open ? "" : "ek-primary", "data-key": "v", "data-decides": "case", "aria-describedby": "ek-signature", disabled: awaited || locked || Boolean(why) || changed,
          onclick: once("validate") }, label("validate"), kbd("v")),
        el("button", { class: changed || blind ? "ek-primary" : "", "data-key": "Ctrl+Enter", "data-decides": "case", "aria-describedby": "ek-signature", disabled: awaited || locked || !model.get("can_correct"),
          onclick: once("correct") }, blind ? "Submit my answer" : label("correct"), kbd("^⏎")),
        model.get("unmet") ? el("button", { "data-key": "w", disabled: locked, onclick: () => ask("unmet_sums") }, "Say why", kbd("w")) : null,
        el("button", { "data-key": "u", disabled: !model.get("undo"), title: model.get("undo"), onclick: () => send("undo") }, "Undo", kbd("u")),
        model.get("can_reply") ? el("button", { "data-focus": "reply", onclick: () => ask("reply") }, "Reply") : null,
        el("button", { "data-focus": "more", "aria-expanded": !rare.hidden, "aria-controls": "ek-rare", onclick: toggleRare }, rare.hidden ? "More" : "Less")),
      question ? el("div", { class: "ek-problem", role: "alert" }, el("p", { text: question }), el("div", { class: "ek-row" },
        el("button", { "data-focus": "anyway", text: "Yes, record both", onclick: once(lastDecision) }),
        el("button", { "data-focus": "look", text: "Look again", onclick: () => send("select", { issue_id: model.get("issue_id") }) }))) : null,
      model.get("problem") ? el("p", { class: "ek-problem", role: "alert", text: model.get("problem") }) : null);
    fill(rareDecisions,
      el("button", { "data-key": "d", disabled: locked, onclick: () => ask("defer") }, "Defer", kbd("d")),
      el("button", { "data-key": "e", disabled: locked || !model.get("can_ask"), onclick: () => ask("second") }, "2nd expert", kbd("e")),
      el("button", { "data-key": "q", disabled: locked, onclick: () => ask("undeterminable") }, label("undeterminable"), kbd("q")),
      el("button", { "data-key": "n", disabled: locked, onclick: () => ask("note") }, "Note", kbd("n")));
  };

  const draw = () => {
    const segments = model.get("segments");
    const at = current();
    root.hidden = at < 0;
    root.dataset.token = model.get("token");
    root.dataset.page = model.get("page");
    if (at < 0) return;
    const locked = model.get("is_locked");
    controls.hidden = mixture.hidden = !hasSegments();
    if (hasSegments()) drawControls(segments, at, model.get("page"), locked);
    else [controls, rareControls].forEach((part) => part.replaceChildren()); // so that no key presses a hidden button
    drawShares(locked);
    drawDecision(locked);
    notes.disabled = locked;
    if (typing === null && document.activeElement !== notes) notes.value = model.get("notes");
  };
  const cited = ({ detail: { page, text } }) => { // a passage that was selected on the page becomes part of a note
    if (root.hidden || model.get("is_locked")) return;
    ask("note");
    words.value = [words.value.trim(), `p. ${page}: “${text}”`].filter(Boolean).join("\n");
  };
  document.addEventListener("evalkit-passage", cited);
  const leaving = () => { if (typing !== null) sendNotes(); };
  document.addEventListener("evalkit-leaving", leaving);
  model.on("change:token", () => { clearTimeout(typing); typing = null; stopAsking(); notes.value = model.get("notes"); mixture.open = false; });
  notes.value = model.get("notes");
  const stop = drawnOnChange(model, root, draw);
  announce(model, "saved");
  return () => { document.removeEventListener("evalkit-leaving", leaving); document.removeEventListener("evalkit-passage", cited); stop(); sendNotes(); };
}

export default { render };
