// A statement template: its sums, its issues, the rows that it reads from the page, the unread lines, and its settings. All
// lists show the result of the template as it is now; the selected entry is highlighted on the page.

const LISTS = [["issues", "Issues", "1"], ["rows", "Rows", "2"], ["left", "Unread lines", "3"], ["template", "Settings", "4"]];
const RANKS = { critical: "BLOCKER", high: "BLOCKER", medium: "MAJOR", low: "MINOR" };

function render({ model, el: root }) {
  root.classList.add("ek", "ek-template");
  let drawnToken = null;
  let list = "issues";
  let brought = ""; // the entry that was scrolled into view last
  const send = counted(model, root, () => drawnToken);
  const shown = () => model.get("case");
  const selected = () => model.get("selected");
  const select = (name) => send("select", { issue_id: name });
  const show = (name) => { list = name; brought = selected(); draw(); body.scrollTop = 0; };
  const opener = (name) => ({
    tabindex: 0, "data-name": name, "data-focus": name, "aria-current": selected() === name ? "true" : null,
    onclick: (event) => { if (!event.target.closest("button")) select(name); },
    onkeydown: (event) => { if ((event.key === "Enter" || event.key === " ") && event.target === event.currentTarget) { event.preventDefault(); select(name); } },
  });

  // ---- stepping through what is listed

  const listed = () => ({
    issues: shown().issues.map((one) => one.issue_id), rows: model.get("rows").map((one) => one.name),
    left: model.get("left").map((one) => one.name), template: [],
  }[list]);
  const step = (by) => {
    const names = listed();
    const at = names.indexOf(selected());
    const next = names[at < 0 ? 0 : Math.min(Math.max(at + by, 0), names.length - 1)];
    if (next && next !== selected()) select(next);
  };
  const toWanted = () => {
    const names = shown().issues.map((one) => one.issue_id);
    const at = names.indexOf(selected());
    const wanted = model.get("wanted");
    const next = wanted.find((name) => names.indexOf(name) > at) || wanted[0];
    if (!next) return;
    list = "issues";
    select(next);
  };

  // ---- sums

  const sum = (check) => el("tr", {
    ...opener(check.name), class: `${check.is_met ? "ek-met" : "ek-unmet"}${selected() === check.name ? " ek-chosen-row" : ""}`, title: check.message,
    "aria-label": `${check.label}: ${check.is_met ? "agrees" : `differs, printed ${check.expected}, read ${check.found}`}`,
  },
  el("td", { class: "ek-sign", text: check.is_met ? "✓ agrees" : "✗ differs" }),
  el("td", { class: "ek-sum-label" }, check.label, check.account ? el("small", { class: "ek-muted", text: ` ${check.account}` }) : null),
  el("td", { class: "ek-money", text: check.expected }), el("td", { class: "ek-money", text: check.found }),
  el("td", { class: "ek-money", text: check.is_met ? "" : check.difference }));
  const sums = () => {
    const all = model.get("sums");
    if (!all.checks) return null;
    return el("section", { class: "ek-sums", "aria-label": "sums" },
      el("h3", { class: all.is_met ? "ek-met" : "ek-unmet" }, el("span", { text: `${all.is_met ? "✓" : "✗"} Sums: ` }), all.words),
      all.checks.length ? el("div", { class: "ek-sums-table" }, el("table", {},
        el("thead", {}, el("tr", {}, ["", "Sum", "Printed", "Read", "Difference"].map((text, at) => el("th", { scope: "col", class: at > 1 ? "ek-money" : "" },
          text || el("span", { class: "ek-for-readers", text: "met" }))))),
        el("tbody", {}, all.checks.map(sum)))) : null,
      all.reason ? el("p", { class: "ek-reason" }, el("b", { text: "Reason for approving although sums do not add up: " }), all.reason) : null);
  };

  // ---- two readings

  const question = (doubt) => {
    const chosen = model.get("readings")[doubt.name];
    const isLocked = model.get("is_locked");
    const choose = (number, letter) => el("th", { scope: "col" }, el("button", {
      "data-key": doubt === shown().questions[0] ? letter : null, "data-decides": "", "data-focus": `${doubt.name} ${number}`, disabled: isLocked,
      "aria-pressed": chosen === number, class: chosen === number ? "ek-on" : "", onclick: () => send("reading", { question: doubt.name, number }),
    }, chosen === number ? "✓ Chosen" : "This is right", doubt === shown().questions[0] ? kbd(letter) : null));
    const pair = (cells) => cells.map((text, number) => el("td", { class: `ek-reading${chosen === number ? " ek-chosen" : ""}`, text }));
    return el("section", { class: "ek-question", "aria-label": doubt.question, onclick: (event) => event.stopPropagation() },
      el("h3", { text: doubt.question }),
      el("table", {},
        el("thead", {}, el("tr", {}, el("th", { scope: "col", text: "On the page" }), choose(0, "["), choose(1, "]"))),
        el("tbody", {}, doubt.rows.map((line) => el("tr", { ...opener(line.name), "aria-label": `${line.text}: ${line.cells.join(", or ")}` },
          el("td", {}, el("div", { class: "ek-words", text: line.text }), line.picture ? el("img", { class: "ek-line-cut", src: line.picture, alt: "as it is on the page" }) : null),
          pair(line.cells)))),
        el("tfoot", {}, doubt.totals.map(([label, ...cells]) => el("tr", {}, el("th", { scope: "row", text: label }), pair(cells))))));
  };

  // ---- issues

  const issue = (one) => {
    const isOpen = selected() === one.issue_id;
    const isWanted = model.get("wanted").includes(one.issue_id);
    const note = model.get("notes")[one.issue_id];
    const doubt = shown().questions.find((candidate) => candidate.issue_id === one.issue_id);
    return el("article", {
      ...opener(one.issue_id), class: `ek-issue${isOpen ? " ek-selected" : ""}${isWanted ? " ek-wanted" : ""}`, "data-issue": one.issue_id,
      "aria-label": `${SEVERITIES[RANKS[one.severity]]}: ${one.message}${isWanted ? ", must be looked at" : ""}`,
    },
    el("header", {}, severityTag(RANKS[one.severity]),
      el("span", { class: "ek-muted", text: `${one.by} · ${one.where}` }), el("span", { class: "ek-grow" }),
      isWanted ? el("span", { class: "ek-must", text: "look here" }) : model.get("seen").includes(one.issue_id) ? el("span", { class: "ek-seen", text: "seen" }) : null),
    el("p", { class: "ek-message", text: one.message }),
    doubt ? question(doubt) : null,
    one.fix ? el("p", { class: "ek-muted", text: `Suggested: ${one.fix}` }) : null,
    one.arbitrator ? el("p", { class: "ek-arbitrator", text: one.arbitrator }) : null,
    isOpen && one.evidence ? el("p", { class: "ek-muted", text: one.evidence }) : null,
    isOpen && model.get("place") ? el("p", { class: "ek-muted", text: model.get("place") }) : null,
    note ? el("p", { class: "ek-muted", text: `Your note: ${note}` }) : null,
    isOpen && !doubt ? verdictButtons(one.issue_id, (model.get("verdicts")[one.issue_id] || {}).verdict, send, model.get("is_locked"), one.answers) : null);
  };
  const opinion = (one) => el("section", { class: "ek-opinion", "aria-label": `answer ${one.name}` },
    el("header", {}, el("b", { text: `Answer ${one.name}` }), one.overall ? el("span", { class: "ek-muted", text: one.overall }) : null),
    el("ul", {}, one.changes.map((text) => el("li", { text }))),
    one.notes ? el("p", { class: "ek-muted", text: one.notes }) : null,
    one.can_take ? el("button", { text: `Take answer ${one.name}`, "data-focus": `take ${one.name}`, onclick: () => send("take", { opinion: one.name }) }) : null);
  const issues = () => [
    shown().recommendation ? el("p", { class: "ek-told", role: "note", text: shown().recommendation }) : null,
    shown().issues.length ? shown().issues.map(issue) : el("p", { class: "ek-muted", text: "No issue was found." }),
    shown().more ? el("p", { class: "ek-muted", text: shown().more }) : null,
    shown().history.length + shown().reports.length ? el("details", { class: "ek-claims" },
      el("summary", { "data-focus": "history", text: "Earlier versions of the template" }),
      el("ul", {}, [...shown().history, ...shown().reports, ...shown().arbitration].map((text) => el("li", { text }))),
      shown().persistent.length ? el("p", { text: "Issues found in several versions:" }) : null,
      el("ul", {}, shown().persistent.map((one) => el("li", {}, one.words,
        one.fixes.length ? el("ul", {}, one.fixes.map((text) => el("li", { text }))) : null)))) : null,
    earlierReviews(shown().earlier),
  ];

  // ---- rows

  const row = (one) => el("tr", {
    ...opener(one.name), class: selected() === one.name ? "ek-chosen-row" : "",
    "aria-label": `${one.date}, ${one.description}, ${one.amount}${one.balance ? `, balance ${one.balance}` : ""}`,
  },
  el("td", { class: "ek-date", text: one.date }), el("td", { class: "ek-words", text: one.description }),
  el("td", { class: "ek-money", text: one.amount }), el("td", { class: "ek-money ek-muted", text: one.balance }));
  const rows = () => {
    const all = model.get("rows");
    if (!all.length) return el("p", { class: "ek-muted", text: "No row is read from this page." });
    return el("table", { class: "ek-rows" },
      el("thead", {}, el("tr", {}, ["Date", "Description", "Amount", "Balance"].map((text, at) => el("th", { scope: "col", class: at > 1 ? "ek-money" : "", text })))),
      el("tbody", {}, all.map((one, at) => [
        one.account && one.account !== all[at - 1]?.account ? el("tr", { class: "ek-account" }, el("td", { colspan: 4, text: one.account })) : null, row(one)])));
  };
  const left = () => {
    const all = model.get("left");
    if (!all.length) return el("p", { class: "ek-muted", text: "No line that looks like a transaction was left unread." });
    return el("div", { role: "list", class: "ek-left" }, all.map((one) => el("div", { role: "listitem" }, el("div", {
      ...opener(one.name), role: "button", class: selected() === one.name ? "ek-chosen-row" : "",
    }, el("p", { class: "ek-words", text: one.text }), el("p", { class: "ek-muted" }, el("b", { text: "! " }), `page ${one.page}: ${one.reason}`)))));
  };

  // ---- how it is read

  const menu = (label, value, options, isYours, focus, onchange) => el("label", { class: "ek-choice" },
    el("span", {}, label, isYours ? el("b", { class: "ek-yours", text: " yours" }) : null),
    el("select", { disabled: model.get("is_locked"), "data-focus": focus, "aria-label": label, onchange },
      options.map(([key, text]) => el("option", { value: key, text, selected: key === value }))));
  const template = () => {
    const all = model.get("template");
    return [
      el("h3", { text: "Columns, from the left" }),
      all.columns.map((one, at) => menu(one.title, one.name, all.names, one.is_yours, `column ${at}`,
        (event) => send("column", { column: at, name: event.target.value }))),
      el("h3", { text: "Signs and dates" }),
      all.choices.map((one) => menu(one.question, one.value, one.options, one.is_yours, `choice ${one.what}`,
        (event) => send("choice", { what: one.what, value: event.target.value }))),
    ];
  };

  // ---- all of it

  const counts = () => ({
    issues: shown().issues.length, rows: model.get("rows").length, left: model.get("left").length, template: "",
  });
  const DRAWN = { issues, rows, left, template };
  const head = el("div", { class: "ek-why" });
  const tabs = el("div", { class: "ek-lists", role: "group", "aria-label": "what is listed" });
  const body = el("div", { class: "ek-list" });
  const draw = () => {
    if (!shown().headline) { root.replaceChildren(); drawnToken = null; return; }
    if (shown().token !== drawnToken) {
      drawnToken = shown().token;
      list = "issues";
      brought = "";
      [head, body].forEach((part) => part.replaceChildren());
      body.scrollTop = 0;
      fill(root, head, body);
    }
    // Redrawn lists keep their scroll position and their open sections.
    const sumsTop = head.querySelector(".ek-sums-table")?.scrollTop || 0;
    const unfolded = [...body.querySelectorAll("details[open] > summary")].map((one) => one.dataset.focus);
    if (shown().issues.some((one) => one.issue_id === selected())) { if (brought !== selected()) list = "issues"; }
    const number = counts();
    const wanted = model.get("wanted").length;
    fill(head, closing(shown().closing), el("h2", { text: shown().headline }), el("p", { class: "ek-muted", text: shown().subline }),
      shown().told.map((sentence) => el("p", { class: "ek-told", role: "note", text: sentence })),
      shown().refusal ? el("div", { class: "ek-refusal", role: "note", text: shown().refusal }) : null,
      shown().opinions.length ? el("div", { class: "ek-opinions" }, shown().opinions.map(opinion)) : null,
      sums(), tabs);
    fill(tabs, LISTS.map(([name, text, key]) => el("button", {
      "data-key": key, "aria-pressed": list === name, class: list === name ? "ek-on" : "", onclick: () => show(name),
    }, `${text}${number[name] === "" ? "" : ` · ${number[name]}`}`, kbd(key))));
    const top = body.scrollTop;
    body.setAttribute("aria-label", LISTS.find(([name]) => name === list)[1]);
    fill(body, el("div", { class: "ek-row ek-stepper" },
      list === "template" ? null : [
        el("button", { "data-key": "j", "data-repeats": "", "aria-label": "next", onclick: () => step(1) }, "Next", kbd("j")),
        el("button", { "data-key": "k", "data-repeats": "", "aria-label": "previous", onclick: () => step(-1) }, "Previous", kbd("k"))],
      wanted ? el("button", { "data-key": "i", onclick: toWanted }, `${wanted} to look at`, kbd("i")) : null,
      el("button", { "data-key": "t", disabled: model.get("is_locked"), onclick: () => document.querySelector(".ek-pane")?.dispatchEvent(new CustomEvent("ek-edges")) }, "Move edges", kbd("t")),
      model.get("has_box") ? null : el("button", { "data-key": "a", disabled: model.get("is_locked"), onclick: () => send("box", { page: model.get("page") }) },
        "Add a box to this page", kbd("a")),
      list === "rows" ? el("span", { class: "ek-muted", text: model.get("counted") }) : null),
    DRAWN[list]());
    for (const one of body.querySelectorAll("details > summary")) one.parentNode.open = unfolded.includes(one.dataset.focus);
    body.scrollTop = top;
    const table = head.querySelector(".ek-sums-table");
    if (table) table.scrollTop = sumsTop;
    if (selected() && brought !== selected()) {
      brought = selected();
      bringSelected();
    }
  };
  const bringSelected = () => {
    const open = selected() && root.querySelector(`[data-name="${CSS.escape(selected())}"]`);
    if (open) bring(open, open.closest(".ek-sums-table") || body);
  };
  const bring = (node, within) => {
    const [box, view] = [node.getBoundingClientRect(), within.getBoundingClientRect()];
    if (box.top < view.top) within.scrollTop -= view.top - box.top + 6;
    else if (box.bottom > view.bottom) within.scrollTop += Math.min(box.bottom - view.bottom + 6, box.top - view.top);
  };
  // The list is drawn before it has a size, and may become smaller: scroll the selected entry into view each time.
  const placed = new ResizeObserver(() => bringSelected());
  placed.observe(body);
  const stop = drawnOnChange(model, root, () => draw());
  return () => { placed.disconnect(); stop(); };
}

export default { render };
