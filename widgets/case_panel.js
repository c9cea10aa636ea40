// Why a person is asked, and each issue with the document's own text.

function render({ model, el: root }) {
  root.classList.add("ek", "ek-case-panel");
  let drawnToken = null;
  const send = counted(model, root, () => drawnToken);

  // The part of a text from `from` to `to`, in which the differing word is marked.
  const piece = (text, from, to, word) => {
    const [start, end] = word.length ? [Math.max(word[0], from), Math.min(word[1], to)] : [to, to];
    if (start >= end) return [text.slice(from, to)];
    return [text.slice(from, start), el("b", { class: "ek-word", text: text.slice(start, end) }), text.slice(end, to)];
  };
  const paragraph = (style) => ({ text, mark, word }) => {
    const [from, to] = mark.length ? mark : [0, 0];
    return el("p", { class: "ek-words" }, piece(text, 0, from, word),
      from < to ? el("mark", { class: `ek-${style}` }, piece(text, from, to, word)) : null, piece(text, to, text.length, word));
  };
  const passages = (shown) => el("div", { class: "ek-context" }, factTable(shown.fact_pages, shown.facts),
    shown.passages.map(({ label, paragraphs }) => [el("p", { class: "ek-muted ek-label", text: label }),
      el("div", { class: "ek-quote ek-window" }, paragraphs.map(paragraph(shown.style)))]),
    shown.hidden ? [el("p", { class: "ek-muted ek-label", text: "Hidden words, which nobody sees on the page" }),
      el("div", { class: "ek-quote ek-window ek-hidden-words ek-words", text: shown.hidden })] : null);

  // A word that was read with doubt, as it is on the page, above its readings.
  const cutOut = ({ readings, pictures }) => el("figure", { class: "ek-cut-out" },
    pictures.map((src) => el("img", { src, alt: "the words as they are on the page", draggable: false })),
    el("figcaption", {}, el("span", { class: "ek-muted", text: "Read as " }), readings.map((reading, position) => [
      position ? el("span", { class: "ek-muted", text: " and as " }) : null, el("b", { class: "ek-words", text: `“${reading}”` })])));

  const verdictOn = (issue) => (model.get("verdicts")[issue.issue_id] || {}).verdict;
  // The answers of the selected question stay in sight, however far the list is scrolled.
  const answers = (issue) => el("footer", { class: "ek-answers" },
    verdictButtons(issue.issue_id, verdictOn(issue), send, model.get("is_locked"), issue.answers),
    issue.answers.effect === "choose_type" && !model.get("is_locked")
      ? el("p", { class: "ek-muted", text: verdictOn(issue) === "confirmed" ? "Which type is it? Set it by its key or button." : "Or set its type by its key or button." }) : null);

  // In a case that asks only about its doubts: the questions, riskiest first. The other remarks belong to the rest.
  const listed = () => {
    const { issues, asked } = model.get("case");
    return model.get("is_short") ? asked.map((id) => issues.find((issue) => issue.issue_id === id)).filter(Boolean) : issues;
  };
  const rest = ({ rest: rows, rest_range: range }) => el("section", { class: "ek-rest", "aria-label": "the rest of the file" },
    rows.length ? el("details", {}, el("summary", { "data-focus": "rest", text: `The program is sure of the rest (${range} %)` }),
      el("ul", {}, rows.map((row) => el("li", {}, el("button", { class: "ek-link", "aria-label": `show page ${row.start}`, onclick: () => send("page", { page: row.start }) }, pages(row.start, row.end)),
        el("span", { class: `ek-chip ${typeClass(row.type)}`, text: typeName(row.type) }), el("span", { class: "ek-muted", text: `${row.percent} % sure${row.doubt}` }))))) : null,
    el("p", { class: "ek-muted", text: "You confirm only what is asked. If you change anything else, you are asked about the whole file." }),
    el("button", { "data-key": "Shift+E", disabled: model.get("is_locked"), onclick: () => send("show_everything") }, "Show everything", kbd("⇧E")));

  const card = (issue) => {
    const selected = model.get("selected") === issue.issue_id;
    const seen = model.get("seen").includes(issue.issue_id);
    const shown = selected && model.get("context").issue_id === issue.issue_id ? model.get("context") : null;
    const isStruck = issue.answers.effect === "strike_quote" && verdictOn(issue) === "confirmed";
    const isFirst = issue === listed()[0];
    const answer = issue.answers[{ confirmed: "change", dismissed: "keep" }[verdictOn(issue)]];
    const select = () => send("select", { issue_id: issue.issue_id });
    // A click on the open card highlights its place again; a click into its passage is for reading or copying.
    const pressed = (event) => { if (!selected || !event.target.closest(".ek-context")) select(); };
    return el("article", {
      class: `ek-issue${selected ? " ek-selected" : ""}`, "data-issue": issue.issue_id, "data-focus": issue.issue_id, tabindex: 0,
      "aria-label": `${SEVERITIES[issue.severity]}: ${issue.message}`, "aria-current": selected ? "true" : null,
      onclick: pressed, onkeydown: (event) => { if (event.key === "Enter" && event.target === event.currentTarget) select(); },
    },
    el("header", {}, severityTag(issue.severity), el("span", { class: "ek-muted", text: issue.where }),
      el("span", { class: "ek-grow" }),
      answer ? el("span", { class: "ek-answered", text: answer }) : null,
      issue.status === "repaired" ? el("span", { class: "ek-muted", text: "repaired" }) : null,
      seen ? el("span", { class: "ek-seen", text: "seen" }) : null),
    el(isFirst ? "h2" : "p", { class: "ek-message", text: issue.message }),
    issue.detail ? el("p", { class: "ek-muted", text: issue.detail }) : null,
    issue.fix ? el("p", { class: "ek-muted", text: `Suggested: ${issue.fix}` }) : null,
    issue.quote && (issue.is_claim || !shown || !shown.passages.length) ? [
      issue.is_claim ? el("p", { class: "ek-muted ek-label", text: `The program quotes${issue.page ? ` from page ${issue.page}` : ""}` }) : null,
      el(isStruck ? "del" : "div", { class: "ek-quote ek-claimed ek-words" }, "“", piece(issue.quote, 0, issue.quote.length, shown ? shown.quote_word : []), "”")] : null,
    shown ? shown.cut_outs.map(cutOut) : null,
    shown ? passages(shown) : null,
    model.get("notes")[issue.issue_id] ? el("p", { class: "ek-muted", text: `Your note: ${model.get("notes")[issue.issue_id]}` }) : null);
  };

  const step = (by) => {
    const issues = listed();
    const at = issues.findIndex((one) => one.issue_id === model.get("selected"));
    const next = issues[Math.min(Math.max(at + by, 0), issues.length - 1)];
    if (next && next.issue_id !== model.get("selected")) send("select", { issue_id: next.issue_id });
  };
  const stepper = (count) => (count > 1 ? el("span", { class: "ek-stepper" },
    el("button", { "data-key": "j", "data-repeats": "", "aria-label": "next issue", onclick: () => step(1) }, "Next", kbd("j")),
    el("button", { "data-key": "k", "data-repeats": "", "aria-label": "previous issue", onclick: () => step(-1) }, "Previous", kbd("k"))) : null);

  // After a blind answer that the program does not share: it is saved, and the screen stops once.
  const stop = ({ you, program, because }) => el("section", { class: "ek-stop", role: "alert" },
    el("h2", { text: "The program gave another answer." }),
    el("p", {}, el("b", { text: "You: " }), `${you}.`),
    el("p", {}, el("b", { text: "The program: " }), `${program}${because ? `, ${because}` : ""}.`),
    el("div", { class: "ek-row" },
      el("button", { class: "ek-primary", "data-key": "k", onclick: () => send("next") }, "Keep my answer", kbd("k")),
      el("button", { "data-key": "l", onclick: () => send("look_again") }, "Look again", kbd("l"))),
    el("p", { class: "ek-muted", text: "Your answer is saved. It counts as your independent answer, also if you change it now." }));

  const titleOf = (name) => (name.length > 1 ? name : `Answer ${name}`);
  const opinion = (one) => el("section", { class: "ek-opinion", "aria-label": `answer ${one.name}` },
    el("header", {}, el("b", { text: titleOf(one.name) }), el("span", { class: "ek-muted", text: one.overall })),
    el("ul", {}, one.segments.map((row) => el("li", { class: row.differs ? "ek-differs" : "" },
      el("span", { class: `ek-chip ${typeClass(row.type)}`, text: typeName(row.type) }), ` ${pages(row.start, row.end)}`,
      row.flags.length ? el("span", { class: "ek-muted", text: ` · ${row.flags.join(", ")}` }) : null))),
    one.notes ? el("p", { class: "ek-muted", text: one.notes }) : null,
    one.can_take ? el("button", { text: `Take ${titleOf(one.name)[0].toLowerCase()}${titleOf(one.name).slice(1)}`, "data-focus": `take ${one.name}`, onclick: () => send("take", { opinion: one.name }) }) : null);

  const repair = (one) => el("li", {}, `${one.description}: `,
    el("del", { text: one.before }), " → ", el("ins", { text: one.after }));
  const repairs = (shown) => el("section", { class: "ek-repairs", "aria-label": "offered repair" },
    el("b", { text: model.get("is_repair_applied") ? "Corrected when you validate:" : "If you validate, the program also corrects:" }),
    el("ul", {}, shown.repairs.map(repair)),
    el("button", { "data-key": "p", "aria-pressed": model.get("is_repair_applied"), disabled: model.get("is_locked"), onclick: () => send("repair") },
      model.get("is_repair_applied") ? "Applied" : "Apply", kbd("p")));

  let drawnFor = null;
  const draw = () => {
    const shown = model.get("case");
    if (!shown.token) { root.replaceChildren(); return; }
    const top = root.scrollTop;
    const windows = () => [...root.querySelectorAll(".ek-selected .ek-window")];
    const target = `${shown.token} ${model.get("selected")}`;
    const scrolled = drawnFor === target ? windows().map((passage) => passage.scrollTop) : [];
    // Sections that the expert has opened stay open when the same case is drawn again.
    const unfolded = shown.token === drawnToken
      ? [...root.querySelectorAll("details[open] > summary")].map((one) => one.textContent) : [];
    drawnToken = shown.token;
    fill(root, shown.stop ? stop(shown.stop) : closing(shown.closing),
      el("div", { class: "ek-why", hidden: Boolean(shown.stop) }, shown.headline ? el("h2", { text: shown.headline }) : null,
        el("div", { class: "ek-row" }, el("p", { class: "ek-muted", text: model.get("is_short") ? shown.asked_line : shown.subline }), stepper(listed().length))),
      shown.told.map((sentence) => el("p", { class: "ek-told", role: "note", text: sentence })),
      shown.opinions.length ? el("div", { class: "ek-opinions" }, shown.opinions.map(opinion)) : null,
      shown.repairs.length ? repairs(shown) : null,
      shown.refusal ? el("div", { class: "ek-refusal", role: "note", text: shown.refusal }) : null,
      ...listed().map(card),
      model.get("is_short") ? rest(shown) : null,
      shown.issues.length || shown.is_blind || shown.closing ? null : el("p", { class: "ek-muted", text: "The checks found no doubt. Decide as if there had been no checks." }),
      shown.is_blind ? null : el("details", { class: "ek-claims" }, el("summary", { "data-focus": "claims", text: "What the program claims" }),
        shown.claims.map((claim) => el("div", { class: `ek-claim ${typeClass(claim.type)}` },
          el("b", { text: `Document ${claim.segment}, ${pages(claim.start, claim.end)}: ${typeName(claim.type)}` }),
          claim.reasoning ? el("p", { class: "ek-muted", text: claim.reasoning }) : null,
          claim.types.map((one) => el("div", {},
            el("span", { text: `${one.type} · ${one.presence} · confidence ${one.confidence} · share ${one.share}` }),
            one.evidence.map((quote) => el("button", {
              class: "ek-evidence", title: `show page ${quote.page}`, "data-focus": `evidence ${claim.segment} ${one.type} ${quote.page} ${quote.snippet}`,
              onclick: () => send("evidence", { page: quote.page, snippet: quote.snippet }),
            }, el("span", { class: "ek-muted", text: `${quote.place}: ` }), el("span", { class: "ek-words", text: `“${quote.snippet}”` })))))))),
      earlierReviews(shown.earlier),
      shown.issues.filter((one) => one.issue_id === model.get("selected")).map(answers));
    for (const one of root.querySelectorAll("details > summary")) one.parentElement.open = unfolded.includes(one.textContent);
    root.scrollTop = top;
    windows().forEach((passage, position) => { // at first, the marked words are in the middle of their passage
      const mark = passage.querySelector("mark");
      passage.scrollTop = scrolled[position] ?? (mark ? mark.offsetTop - (passage.clientHeight - mark.offsetHeight) / 2 : 0);
    });
    if (drawnFor !== target) {
      drawnFor = target;
      const selected = root.querySelector(".ek-selected");
      // Scroll so that the first issue is visible with the headline above it, and any other issue from its own header.
      if (selected === root.querySelector(".ek-issue")) root.scrollTop = 0;
      else if (selected) selected.scrollIntoView({ block: "start" });
    }
  };
  return drawnOnChange(model, root, draw);
}

export default { render };
