// The queue: one page of the list of cases, with search, filters and order. A choice is sent to the kernel (`view`), which
// selects the cases to list.

const SEARCH_PAUSE = 250;
const AGENTS = {
  V1: "structure", V2: "consistency", V3: "known traps", V4: "quotes", classifier: "no answer", reader: "page not read",
  extractor: "field values", evaluator: "field checks", grader: "form checks",
  "V2-PATIENT": "other patient", layout_geometry: "layout check", semantic_financial: "finance check",
};
const FILTERS = [
  ["severity", "Severity", { ...SEVERITIES, none: "no doubt" }],
  ["dominant_type", "Type", {}],
  ["agent", "Raised by", AGENTS],
  ["review_reason", "Reason", { escalated: "doubts" }],
  ["age", "Age", { day: "last 24 hours", week: "1 to 7 days", older: "over 7 days" }],
  ["source", "Answer from", {}],
  ["kind", "Task", { statement_template: "statement template" }],
];
const SORTS = [
  ["errors", "most errors per minute first"], ["worst", "worst first"], ["oldest", "oldest first"], ["newest", "newest first"],
  ["name", "by file name"], ["pages", "fewest pages first"],
];
const REASONS = {
  escalated: "a check asks for a person",
  audit: "drawn at random from the accepted cases",
  sample: "drawn at random for review",
  requested: "a review was requested",
};
const OUTCOMES = { validated: "validated", corrected: "corrected", undeterminable: "nobody can tell" };
const took = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")} min`;
const number = (count) => count.toLocaleString("en");

const age = (iso) => {
  const minutes = Math.max((Date.now() - new Date(iso)) / 60000, 0);
  if (!iso || Number.isNaN(minutes)) return "";
  if (minutes < 60) return `${Math.floor(minutes)} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / 1440)} days`;
};

function render({ model, el: root }) {
  root.classList.add("ek", "ek-queue");

  let wanted = model.get("view"); // of two quick choices, the second must include the first
  const ask = (changes) => {
    wanted = { ...wanted, page: 0, ...changes };
    say(model, { action: "view", view: wanted });
  };
  const next = () => say(model, { action: "next" });
  const open = (row) => say(model, { action: "open", case_id: row.case_id, take_over: isHeld(row) && !model.get("only_looks") });
  const isHeld = (row) => Boolean(row.holder) && !row.is_mine;

  // ---- permanent elements: they are not rebuilt with the rows, so that focus and half-typed words are not lost

  const title = el("h1");
  const counts = el("span", { class: "ek-muted" });
  const nextButton = el("button", { class: "ek-primary", "data-key": "n", onclick: next }, "Next case", kbd("n"));
  const notice = el("p", { class: "ek-queue-notice", role: "status" });
  const role = el("p", { class: "ek-queue-role", hidden: true });
  let typing = null;
  const searched = () => {
    clearTimeout(typing);
    typing = setTimeout(() => ask({ search: search.value }), SEARCH_PAUSE);
  };
  const search = el("input", {
    type: "search", class: "ek-queue-search", placeholder: "File name or case   /",
    "aria-label": "Search by file name or case", oninput: searched,
  });
  const chosen = (name) => ({ target }) => ask({ [name]: target.value || null });
  const menus = FILTERS.map(([name, label, words]) => {
    const select = el("select", { "aria-label": label, onchange: chosen(name) });
    return { name, label, words, select, box: el("label", { class: "ek-queue-menu", hidden: true }, el("span", { text: label }), select) };
  });
  const sort = el("select", { "aria-label": "Order", onchange: chosen("sort") },
    SORTS.map(([value, text]) => el("option", { value, text })));
  const everyTask = el("input", { type: "checkbox", onchange: () => ask({ all_tasks: everyTask.checked }) });
  const everyTaskLabel = el("label", { class: "ek-queue-check" }, everyTask, "all tasks");
  const finished = el("input", { type: "checkbox", onchange: () => ask({ show_finished: finished.checked }) });
  const clear = el("button", {
    class: "ek-link", text: "Clear all",
    onclick: () => {
      search.value = "";
      ask({ search: "", ...Object.fromEntries(FILTERS.map(([name]) => [name, null])) });
      search.focus();
    },
  });
  const body = el("div", { class: "ek-queue-body" });
  const replies = el("div");
  const drawn = el("p", { class: "ek-queue-drawn ek-muted" });
  const recentRows = el("div");
  const recent = el("details", { class: "ek-queue-recent", ontoggle: () => { if (recent.open) say(model, { action: "recent" }); } },
    el("summary", { text: "My last ten" }), recentRows);
  const pager = el("nav", { class: "ek-queue-pager", "aria-label": "Pages of the queue" });
  fill(root, el("div", { class: "ek-queue-inner" },
    el("div", { class: "ek-queue-head" }, title, counts, el("span", { class: "ek-grow" }),
      el("button", { text: "Refresh", onclick: () => say(model, { action: "refresh" }) }), nextButton),
    role,
    notice, replies,
    el("div", { class: "ek-queue-tools", role: "search" },
      search, menus.map(({ box }) => box),
      el("label", { class: "ek-queue-menu" }, el("span", { text: "Order" }), sort),
      el("label", { class: "ek-queue-check" }, finished, "show finished"), everyTaskLabel, clear),
    drawn, body, pager, recent));

  // ---- one row

  const tags = (row) => ["blocker", "major", "minor"].filter((name) => row[name]).map((name) =>
    el("span", { class: `ek-tag ek-${name.toUpperCase()}`, text: plural(row[name], SEVERITIES[name.toUpperCase()]) }));
  const type = (row) => {
    if (row.is_blind) return el("span", { class: "ek-muted", title: "The program's answer is shown after yours.", text: "shown after your answer" });
    if (!row.dominant_type) return null;
    return el("span", { class: `ek-queue-type ${typeClass(row.dominant_type)}`, text: row.dominant_type });
  };
  const state = (row) => {
    if (row.status === "completed") return "finished";
    if (row.is_mine) return "open here";
    if (row.holder === model.get("reviewer")) return `open in another of your tabs since ${clock(row.since)}`;
    if (row.holder) return `open by ${row.holder} since ${clock(row.since)}`;
    if (row.is_barred) return "must be answered by another expert";
    if (row.needs_adjudicator) return "must be decided by an adjudicator";
    if (row.status === "deferred") return row.deferred_by ? `deferred by ${row.deferred_by}: ${row.deferred_because}` : "deferred";
    return "";
  };
  const verb = (row) => {
    if (row.status === "completed" || model.get("only_looks")) return "Read";
    if (row.needs_adjudicator) return null;
    if (row.is_barred && !row.is_mine) return null;
    if (isHeld(row)) return "Take over";
    return row.is_mine ? "Continue" : "Open";
  };
  const line = (row) => {
    const does = verb(row);
    const moved = (event) => {
      if (event.target !== event.currentTarget) return; // keys on the button are for the button
      if (event.key === "Enter" && !event.repeat && does) open(row);
      const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      if (step && event.currentTarget[step]) {
        event.preventDefault();
        event.currentTarget[step].focus();
      }
    };
    const isNext = row.case_id === model.get("next_case_id");
    return el("tr", {
      class: `ek-case ek-case-${row.status}${isNext ? " ek-case-next" : ""}`, "data-case": row.case_id, tabindex: 0, onkeydown: moved,
      "aria-label": [row.pdf_filename, does ? `Enter: ${does}` : "", isNext ? "comes next" : "", state(row)].filter(Boolean).join(", "),
    },
      el("td", { class: "ek-case-what" },
        el("b", { class: "ek-file", text: row.pdf_filename }), isNext ? el("span", { class: "ek-queue-next", text: "next" }) : null,
        row.decision_reason ? el("div", { class: "ek-case-why", text: row.decision_reason }) : null),
      el("td", { class: "ek-case-count", text: number(row.pages) }),
      el("td", {}, type(row)),
      el("td", {}, el("div", { class: "ek-case-counts" }, tags(row), row.agents.length
        ? el("span", { class: "ek-muted", title: "Checks that raised the issues", text: row.agents.map((one) => AGENTS[one] || one).join(", ") }) : null)),
      el("td", { title: REASONS[row.review_reason], text: row.review_reason === "escalated" ? "doubts" : row.review_reason }),
      el("td", { class: "ek-case-age", title: row.created_at ? new Date(row.created_at).toLocaleString() : null, text: age(row.created_at) }),
      el("td", { class: "ek-case-source ek-muted", title: row.source, text: row.source.split(":").pop() }),
      el("td", {}, el("div", { class: "ek-case-do" },
        el("span", { class: "ek-case-state", text: state(row) }),
        does ? el("button", { "aria-label": `${does} ${row.pdf_filename}`, text: does, onclick: () => open(row) }) : null)));
  };

  // ---- the list

  const empty = (what, todo, ...more) => el("div", { class: "ek-queue-empty" },
    el("h2", { text: what }), el("p", { text: todo }), more);
  const table = (rows) => el("table", { class: "ek-cases", "aria-label": "Cases" },
    el("thead", {}, el("tr", {}, ["File", "Pages", "Type", "Issues", "Reason", "Age", "Answer from", ""].map((text) =>
      el("th", { scope: "col", text })))),
    el("tbody", {}, rows.map(line)));

  const drawHead = () => {
    const { pending = 0, in_review: opened = 0, deferred = 0, lost = 0, done_today: done = 0, done_by_me: mine = 0 } = model.get("counts");
    const onlyLooks = model.get("only_looks");
    title.textContent = pending ? `${number(pending)} ${pending === 1 ? "case is" : "cases are"} waiting`
      : lost ? "No cases can be shown" : `No cases are waiting for you. ${number(done)} done today.`;
    counts.textContent = [
      opened ? `${number(opened)} open now` : "", deferred ? `${number(deferred)} deferred` : "",
      pending ? `${number(done)} done today` : "", mine ? `${number(mine)} by you` : "",
    ].filter(Boolean).join(" · ");
    const { drawn: audits = 0 } = model.get("counts");
    const since = age(model.get("drawn_since"));
    drawn.hidden = !audits;
    drawn.textContent = `${number(audits)} ${audits === 1 ? "case" : "cases"} drawn at random for you${since ? `, the oldest ${since} ago` : ""}. Every eighth case is one of them, whatever the filters.`;
    fill(replies, model.get("replies").map((reply) => el("p", { class: "ek-queue-notice" },
      `${reply.reviewer} replies about ${reply.case_id}: “${reply.sentence}”`)));
    nextButton.hidden = !pending || Boolean(onlyLooks);
    role.textContent = onlyLooks;
    role.hidden = !onlyLooks;
    const sentences = [lost
      ? `${number(lost)} ${lost === 1 ? "case is" : "cases are"} missing from this list because files were lost. Ask your administrator to restore them.`
      : "", model.get("notice")].filter(Boolean);
    notice.textContent = sentences.join(" ");
    notice.hidden = !sentences.length;
  };
  const drawTools = () => {
    const view = model.get("view");
    const facets = model.get("facets");
    if (document.activeElement !== search) search.value = view.search || "";
    for (const { name, words, select, box } of menus) {
      const values = Object.entries(facets[name] || {});
      fill(select, el("option", { value: "", text: "all" }), values.map(([value, count]) =>
        el("option", { value, text: `${words[value] || value} (${number(count)})` })));
      select.value = view[name] || "";
      select.classList.toggle("ek-chosen", Boolean(view[name]));
      if (values.length > 1 || view[name]) box.hidden = false; // it stays visible, so that the other menus do not move
    }
    sort.value = view.sort || "errors";
    everyTask.checked = Boolean(view.all_tasks);
    everyTaskLabel.hidden = !model.get("tasks").length;
    finished.checked = Boolean(view.show_finished);
    clear.hidden = !isNarrowed();
  };
  const isNarrowed = () => Boolean(model.get("view").search) || FILTERS.some(([name]) => model.get("view")[name]);
  const drawRows = () => {
    const rows = model.get("rows");
    const row = document.activeElement?.closest?.(".ek-case");
    const kept = row && body.contains(row) ? { id: row.dataset.case, isButton: document.activeElement !== row } : null;
    if (rows.length) fill(body, table(rows));
    else if (isNarrowed()) fill(body, empty("No case matches.", "Clear the search and the filters, or tick “show finished”."));
    else fill(body, empty("The queue is empty.", "New cases appear here when new files have been processed. To read finished cases, tick “show finished”."));
    const again = kept && [...body.querySelectorAll(".ek-case")].find((one) => one.dataset.case === kept.id);
    if (again) (kept.isButton && again.querySelector("button") || again).focus();
  };
  const drawRecent = () => fill(recentRows, model.get("recent").map((row) => el("div", { class: "ek-row", "data-recent": row.case_id },
    el("b", { text: row.pdf_filename }), el("span", { text: OUTCOMES[row.outcome] || row.outcome }),
    el("span", { class: "ek-muted", text: [new Date(row.closed_at).toLocaleString(), row.seconds_active ? took(row.seconds_active) : ""].filter(Boolean).join(" · ") }),
    el("button", { class: "ek-link", "data-focus": `read ${row.case_id}`, text: "Read", onclick: () => say(model, { action: "open", case_id: row.case_id }) }),
    row.outcome === "reopened" || model.get("only_looks") ? null
      : el("button", { "data-focus": `reopen ${row.case_id}`, "aria-label": `Reopen ${row.pdf_filename}`, text: "Reopen", onclick: () => say(model, { action: "reopen", case_id: row.case_id }) }))));
  const drawPager = () => {
    const view = model.get("view");
    const matching = model.get("matching");
    const size = view.rows || 50;
    const first = (view.page || 0) * size;
    const last = Math.min(first + size, matching);
    const turn = (page) => { ask({ page }); root.scrollTop = 0; };
    pager.hidden = matching <= size;
    fill(pager,
      el("button", { text: "Previous", disabled: first === 0, onclick: () => turn(view.page - 1) }),
      el("span", { text: `${number(first + 1)}–${number(last)} of ${number(matching)}` }),
      el("button", { text: "Next", "aria-label": "Next page", disabled: last >= matching, onclick: () => turn(view.page + 1) }));
  };
  const draw = () => { wanted = model.get("view"); drawHead(); drawTools(); drawRows(); drawPager(); drawRecent(); };
  // Back in the queue, Enter opens the next case.
  const welcome = new IntersectionObserver(([entry]) => {
    const isElsewhere = document.activeElement && document.activeElement !== document.body && document.activeElement.isConnected;
    if (entry.isIntersecting && !isElsewhere && !nextButton.hidden) nextButton.focus();
  });
  welcome.observe(root);

  const pressed = (event) => {
    if (!root.isConnected || !root.offsetParent || event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable='true']");
    if (event.key === "Escape" && event.target === search) search.blur();
    if (isTyping) return;
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
      search.select();
    }
  };
  document.addEventListener("keydown", pressed);
  const stop = drawnOnChange(model, root, draw);
  return () => {
    clearTimeout(typing);
    welcome.disconnect();
    document.removeEventListener("keydown", pressed);
    stop();
  };
}

export default { render };
