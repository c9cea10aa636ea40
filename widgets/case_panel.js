// Why a person is asked: the arbiter's sentence, and each issue with what the document says.

function render({ model, el: root }) {
  root.classList.add("ek", "ek-case-panel");

  const paragraph = (one) => {
    if (!one.mark || !one.mark.length) return el("p", { text: one.text });
    const [from, to] = one.mark;
    return el("p", {}, one.text.slice(0, from),
      el("mark", { class: `ek-${one.style}`, text: one.text.slice(from, to) }), one.text.slice(to));
  };
  const context = (shown) => el("div", { class: "ek-context" },
    shown.note ? el("p", { class: "ek-muted", text: shown.note }) : null,
    el("div", { class: "ek-quote ek-window" }, shown.paragraphs.map(paragraph)),
    shown.reasoning ? el("p", { class: "ek-muted", text: `The agent's reasoning: ${shown.reasoning}` }) : null);

  const verdicts = (issue) => {
    const said = (model.get("verdicts")[issue.issue_id] || {}).verdict;
    const press = (verdict) => (event) => {
      event.stopPropagation();
      say(model, { token: model.get("case").token, action: "verdict", issue_id: issue.issue_id, verdict: said === verdict ? null : verdict });
    };
    return el("div", { class: "ek-verdicts" },
      el("button", { text: "Confirm", "aria-pressed": said === "confirmed", class: said === "confirmed" ? "ek-on" : "", onclick: press("confirmed") }),
      el("button", { text: "Dismiss", "aria-pressed": said === "dismissed", class: said === "dismissed" ? "ek-on" : "", onclick: press("dismissed") }));
  };

  const card = (issue) => {
    const selected = model.get("selected") === issue.issue_id;
    const seen = model.get("seen").includes(issue.issue_id);
    const shown = model.get("context");
    const select = () => say(model, { token: model.get("case").token, action: "select", issue_id: issue.issue_id });
    // A press on the open card lights its place again; one into its passage is somebody reading or copying there.
    const pressed = (event) => { if (!selected || !event.target.closest(".ek-context")) select(); };
    return el("article", {
      class: `ek-issue${selected ? " ek-selected" : ""}`, "data-issue": issue.issue_id, tabindex: 0,
      onclick: pressed, onkeydown: (event) => { if (event.key === "Enter" && event.target === event.currentTarget) select(); },
    },
    el("header", {}, el("span", { class: `ek-tag ek-${issue.severity}`, text: issue.severity }),
      el("span", { class: "ek-muted", text: ` ${issue.issue_id} · ${issue.group}${issue.where ? ` · ${issue.where}` : ""}` }),
      el("span", { class: "ek-grow" }),
      issue.status === "repaired" ? el("span", { class: "ek-muted", text: "repaired" }) : null,
      seen ? el("span", { class: "ek-seen", text: "seen" }) : null),
    el("p", { class: "ek-message", text: issue.message }),
    issue.fix ? el("p", { class: "ek-muted", text: `Suggested: ${issue.fix}` }) : null,
    issue.quote ? el("div", { class: "ek-quote", text: `“${issue.quote}”` }) : null,
    issue.verdict ? el("p", { class: `ek-verdict ek-verdict-${issue.verdict}`, text: issue.verdict_words }) : null,
    selected && shown && shown.issue_id === issue.issue_id ? context(shown) : null,
    selected ? verdicts(issue) : null);
  };

  const repair = (one) => el("li", {}, `${one.description}: `,
    el("del", { text: one.before }), " → ", el("ins", { text: one.after }));

  let drawnFor = null;
  let drawnToken = null;
  const draw = () => {
    const shown = model.get("case");
    if (!shown.headline) { root.replaceChildren(); return; }
    const top = root.scrollTop;
    // What somebody has unfolded stays so when the same case is drawn again.
    const unfolded = shown.token === drawnToken
      ? [...root.querySelectorAll("details[open] > summary")].map((one) => one.textContent) : [];
    drawnToken = shown.token;
    fill(root,
      el("div", { class: "ek-why" }, el("h2", { text: shown.headline }), el("p", { class: "ek-muted", text: shown.subline })),
      shown.repairs.length
        ? el("div", { class: "ek-repairs" }, el("b", { text: "Validating will repair:" }), el("ul", {}, shown.repairs.map(repair)))
        : null,
      shown.refusal ? el("div", { class: "ek-refusal", role: "note", text: shown.refusal }) : null,
      ...shown.issues.map(card),
      shown.issues.length ? null : el("p", { class: "ek-muted", text: "No check found anything. This case is an audit: decide as if nobody had." }),
      el("details", { class: "ek-claims" }, el("summary", { text: "What the agent claims" }),
        shown.claims.map((claim) => el("div", { class: `ek-claim ${typeClass(claim.type)}` },
          el("b", { text: `Segment ${claim.segment}, ${pages(claim.start, claim.end)}: ${typeName(claim.type)}` }),
          claim.reasoning ? el("p", { class: "ek-muted", text: claim.reasoning }) : null,
          claim.types.map((one) => el("div", {},
            el("span", { text: `${one.type} · ${one.presence} · confidence ${one.confidence} · share ${one.share}` }),
            one.evidence.map((quote) => el("button", {
              class: "ek-evidence", title: `show page ${quote.page}`,
              onclick: () => say(model, { token: model.get("case").token, action: "evidence", page: quote.page, snippet: quote.snippet }),
            }, el("span", { class: "ek-muted", text: `page ${quote.page}: ` }), `“${quote.snippet}”`))))))),
      shown.earlier.length
        ? el("details", { class: "ek-claims" }, el("summary", { text: plural(shown.earlier.length, "earlier review") }),
          shown.earlier.map((one) => el("p", { text: `${one.reviewer}, ${one.when}: ${one.outcome}${one.notes ? `. ${one.notes}` : ""}` })))
        : null);
    for (const one of root.querySelectorAll("details > summary")) one.parentElement.open = unfolded.includes(one.textContent);
    root.scrollTop = top;
    if (drawnFor !== model.get("selected")) {
      drawnFor = model.get("selected");
      const selected = root.querySelector(".ek-selected");
      if (selected) selected.scrollIntoView({ block: "nearest" });
      const mark = root.querySelector(".ek-selected .ek-window mark");
      if (mark) mark.closest(".ek-window").scrollTop = mark.offsetTop - 90; // the match, and what stands before it
    }
  };
  model.on("change", draw);
  draw();
}

export default { render };
