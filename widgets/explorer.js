// The explorer: figures of a study, each of which opens its documents; and one open document beside its pages. A press sends
// the filters that shall hold (`choose`); the kernel counts, and only what is shown comes here.

const SYSTEMS = { truth: "Truth", program: "Program", production: "Production" };
const PROPERTIES = { truth: "truth", program: "program", production: "production", confidence: "confidence", rule: "rule" };
const VALUES = {
  review: { reviewed: "truth known", undeterminable: "nobody can tell", pending: "waits for an expert", unseen: "not looked at", unreadable: "not readable" },
};
const COMPARED = { program: "Program and truth", production: "Production and truth", both: "Production and program" };
const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(100 * share)} %`);
const number = (count) => count.toLocaleString("en");
const range = (low, high) => `${Math.round(100 * low)}–${Math.round(100 * high)} %`;
const file = (text) => el("span", { class: "ek-file", title: text, text });
const spans = (segments) => segments.map(([first, last, type]) => `${pages(first, last)} ${typeName(type)}`).join("; ");

function render({ model, el: root }) {
  root.classList.add("ek", "ek-explorer");
  root.setAttribute("role", "region");
  root.setAttribute("aria-label", "explorer");
  const send = counted(model, root, () => "");
  const filters = () => model.get("filters");
  const choose = (changes, more = {}) => {
    const wanted = { ...filters(), ...changes };
    Object.keys(wanted).forEach((name) => { if (wanted[name] === null) delete wanted[name]; });
    send("choose", { filters: wanted, comparison: model.get("comparison"), page: 0, ...more });
  };
  // A second press on the same value takes the filter away.
  const isChosen = (values) => Object.entries(values).every(([name, value]) => filters()[name] === value);
  const toggle = (values) => choose(isChosen(values) ? Object.fromEntries(Object.keys(values).map((name) => [name, null])) : values);
  const chosen = (values) => ({ "aria-pressed": isChosen(values), "data-focus": JSON.stringify(values), onclick: () => toggle(values) });
  const valueName = (name, value) => (VALUES[name] || {})[value] || value;
  const labelOf = (name) => model.get("answer").slices.find((slice) => slice.name === name)?.label || sentence(PROPERTIES[name]);
  const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

  // ---------------------------------------------------------------------------------------------- figures

  const head = (answer) => el("header", { class: "ek-explorer-head" },
    el("h2", { tabindex: -1, "data-focus": "head" }, `${number(answer.matching)} of ${plural(answer.total, "document")}`),
    answer.shares.filter((share) => share.of === "program" || model.get("has_production")).map((share) => el("span", { class: "ek-share" },
      el("b", { text: `${SYSTEMS[share.of]} right: ${percent(share.value)}` }), " ",
      el("span", { class: "ek-muted", text: share.n ? `${range(share.low, share.high)}, ${number(share.n)} with known truth` : "no known truth" }))),
    el("span", { class: "ek-grow" }),
    el("button", { "data-focus": "export", text: "Export this list", onclick: () => send("export") }),
    el("span", { class: "ek-draw" },
      el("button", { "data-focus": "draw", text: "Draw for review", onclick: () => send("draw", { count: Math.max(Number.parseInt(draws.value, 10) || 0, 0) }) }), draws));
  const draws = el("input", { type: "text", inputmode: "numeric", value: "10", class: "ek-count", "aria-label": "number of documents to draw" });
  const chips = () => {
    const names = Object.keys(filters());
    if (!names.length) return el("p", { class: "ek-muted ek-chips", text: "Choose a cell, a bar or a property to filter the documents." });
    return el("div", { class: "ek-chips", role: "group", "aria-label": "filters" },
      names.map((name) => el("button", {
        class: "ek-chosen-chip", "data-focus": `chip-${name}`, "aria-label": `remove the filter ${labelOf(name)}: ${valueName(name, filters()[name])}`,
        onclick: () => choose({ [name]: null }),
      }, `${labelOf(name)}: ${valueName(name, filters()[name])}`, el("span", { "aria-hidden": true, text: " ×" }))),
      el("button", { class: "ek-link", "data-focus": "clear", text: "Clear all", onclick: () => send("choose", { filters: {}, comparison: model.get("comparison") }) }));
  };
  const slice = (one) => {
    const largest = Math.max(...one.values.map(([, count]) => count), 1);
    return el("section", { class: "ek-slice" }, el("h3", { text: one.label }),
      el("ul", {}, one.values.map(([value, count]) => el("li", {}, el("button", { class: "ek-value", ...chosen({ [one.name]: value }) },
        el("span", { class: "ek-value-name ek-file", title: valueName(one.name, value), text: valueName(one.name, value) }),
        el("span", { class: "ek-value-count", text: number(count) }),
        el("span", { class: "ek-value-bar", "aria-hidden": true, style: { width: `${(100 * count) / largest}%` } }))))),
      one.more ? el("p", { class: "ek-muted", text: `and ${one.more} more` }) : null);
  };
  const matrix = (shown) => {
    const { reference, judged } = shown;
    const comparisons = Object.keys(COMPARED).filter((name) => name === "program" || model.get("has_production"));
    const cell = (row, column, count, total) => {
      const isRight = row === column;
      const shade = count ? Math.round(8 + (32 * count) / Math.max(total, 1)) : 0;
      return el("td", {}, el("button", {
        class: `ek-cell ${isRight ? "ek-cell-right" : "ek-cell-wrong"}`, disabled: !count,
        style: count ? { background: `color-mix(in srgb, var(--${isRight ? "found" : "blocker"}) ${shade}%, var(--card))` } : null,
        "aria-label": `${SYSTEMS[reference]} ${row}, ${SYSTEMS[judged]} ${column}: ${plural(count, "document")}`,
        ...chosen({ [reference]: row, [judged]: column }),
      }, count ? number(count) : "·"));
    };
    return el("section", { class: "ek-part-matrix" },
      el("div", { class: "ek-part-head" }, el("h3", { text: "Confusion" }),
        comparisons.length > 1 ? el("span", { class: "ek-choice", role: "group", "aria-label": "what is compared" }, comparisons.map((name) => el("button", {
          "aria-pressed": model.get("comparison") === name, "data-focus": `compare-${name}`, text: COMPARED[name],
          onclick: () => send("choose", { filters: filters(), comparison: name }),
        }))) : null),
      el("div", { class: "ek-scroll-x", role: "region", tabindex: 0, "aria-label": "confusion matrix" }, el("table", { class: "ek-matrix" },
        el("thead", {}, el("tr", {}, el("td", {}, el("span", { class: "ek-muted", text: `${SYSTEMS[reference]} ↓  ${SYSTEMS[judged]} →` })),
          shown.columns.map((column) => el("th", { scope: "col", class: typeClass(column) }, el("button", { class: "ek-link", ...chosen({ [judged]: column }), text: column }))))),
        el("tbody", {}, shown.rows.map((row, at) => {
          const total = shown.counts[at].reduce((sum, count) => sum + count, 0);
          return el("tr", {}, el("th", { scope: "row", class: typeClass(row) }, el("button", { class: "ek-link", ...chosen({ [reference]: row }), text: row })),
            shown.columns.map((column, place) => cell(row, column, shown.counts[at][place], total)));
        })))),
      shown.unknown ? el("p", { class: "ek-muted", text: `${plural(shown.unknown, "document")} without ${reference === "truth" ? "a known truth" : "both labels"} not counted here.` }) : null);
  };
  const bar = (value, low, high, mark) => el("span", { class: "ek-bar-track", "aria-hidden": true },
    el("span", { class: "ek-bar-fill", style: { width: percentOf(value) } }),
    el("span", { class: "ek-bar-range", style: { left: percentOf(low), width: percentOf(high - low) } }),
    mark === undefined ? null : el("span", { class: "ek-bar-mark", style: { left: percentOf(mark) } }));
  const percentOf = (share) => `${100 * Math.min(Math.max(share || 0, 0), 1)}%`;
  const reliability = (rows) => el("section", { class: "ek-part-reliability" }, el("h3", { text: "Is the confidence right?" }),
    rows.length
      ? el("ul", { class: "ek-bars" }, rows.map((row) => el("li", {}, el("button", {
        class: "ek-bar-row", ...chosen({ confidence: row.bin }),
        "aria-label": `confidence ${row.bin}: ${percent(row.accuracy)} right, between ${range(row.accuracy_low, row.accuracy_high)}, ${plural(row.n, "document")}`,
      }, el("span", { class: "ek-bar-name", text: row.bin }), bar(row.accuracy, row.accuracy_low, row.accuracy_high, row.confidence),
      el("span", { class: "ek-bar-value", text: percent(row.accuracy) }), el("span", { class: "ek-muted ek-bar-count", text: number(row.n) })))))
      : el("p", { class: "ek-muted", text: "No document has a known truth and a stated confidence." }),
    rows.length ? el("p", { class: "ek-muted", text: "Bar: share that is right, with its 95 % interval. Line: the stated confidence. Number: documents." }) : null);
  const rules = (rows) => el("section", { class: "ek-part-rules" }, el("h3", { text: "What each rule is worth" }),
    rows.length
      ? el("div", { class: "ek-scroll-x ek-rules-frame", role: "region", tabindex: 0, "aria-label": "rules" }, el("table", { class: "ek-rules" },
        el("thead", {}, el("tr", {}, ["Rule", "Documents", "Right, as experts judged", "Errors caught", "Needless", "Minutes", "Worth"].map((text, at) => el("th", { scope: "col", class: [1, 3, 4, 5].includes(at) ? "ek-number-cell" : "", text })))),
        el("tbody", {}, rows.map((row) => el("tr", {},
          el("th", { scope: "row" }, el("button", { class: "ek-link", ...chosen({ rule: row.rule }), "data-focus": `rule-${row.rule}-${row.origin}`, text: row.rule })),
          el("td", { class: "ek-number-cell", text: number(row.documents) }),
          el("td", {}, row.judged ? [bar(row.precision, row.low, row.high), el("span", { class: "ek-bar-value", text: percent(row.precision) }),
            el("span", { class: "ek-muted", text: ` of ${number(row.judged)}` })] : el("span", { class: "ek-muted", text: "not judged" })),
          el("td", { class: "ek-number-cell", text: number(row.wrong) }),
          el("td", { class: "ek-number-cell", text: number(row.validated) }),
          el("td", { class: "ek-number-cell", text: number(Math.round(row.minutes)) }),
          el("td", { text: row.verdict }))))))
      : el("p", { class: "ek-muted", text: "No rule raised an issue about these documents." }));
  const documents = (answer) => el("section", { class: "ek-part-documents" }, el("h3", { text: "Documents" }),
    answer.documents.length
      ? el("div", { class: "ek-scroll-x", role: "region", tabindex: 0, "aria-label": "documents" }, el("table", { class: "ek-list" },
        el("thead", {}, el("tr", {}, ["File", "Pages", "Truth", "Program", ...(model.get("has_production") ? ["Production"] : []), "Decision"].map((text, at) => el("th", { scope: "col", class: at === 1 ? "ek-number-cell" : "", text })))),
        el("tbody", {}, answer.documents.map((row) => el("tr", {},
          el("th", { scope: "row" }, el("button", { class: "ek-link", "data-focus": `open-${row.doc_id}`, onclick: () => send("document", { doc_id: row.doc_id }) }, file(row.file))),
          el("td", { class: "ek-number-cell", text: row.page_count ?? "–" }),
          ["truth", "program", ...(model.get("has_production") ? ["production"] : [])].map((name) => el("td", {}, label(name, row))),
          el("td", { text: row.decision }))))))
      : el("p", { class: "ek-muted", text: "No document passes all filters. Remove one of them." }),
    answer.page_count > 1 ? el("nav", { class: "ek-pager", "aria-label": "pages of the list" },
      el("button", { "data-focus": "before", disabled: !answer.page, text: "Previous", onclick: () => choose({}, { page: answer.page - 1 }) }),
      el("span", { text: `${answer.page + 1} of ${answer.page_count}` }),
      el("button", { "data-focus": "after", disabled: answer.page + 1 >= answer.page_count, text: "Next", onclick: () => choose({}, { page: answer.page + 1 }) })) : null);
  const label = (name, row) => {
    if (row[name] === "unknown") return el("span", { class: "ek-muted", text: "–" });
    const isWrong = ![row.truth, "unknown"].includes(row[name]) && row.truth !== "unknown";
    const confidence = name === "program" && row.stated !== null ? ` ${percent(row.stated)}` : "";
    return el("span", { class: `${typeClass(row[name])} ek-label${isWrong ? " ek-label-wrong" : ""}` }, row[name],
      confidence ? el("span", { class: "ek-muted", text: confidence }) : null, isWrong ? el("span", { class: "ek-wrong-word", text: " wrong" }) : null);
  };

  // ---------------------------------------------------------------------------------------------- a document

  const open = (shown) => [
    el("div", { class: "ek-open-head" },
      el("button", { "data-focus": "overview", onclick: () => send("overview") }, "← Figures", kbd("Esc")),
      el("span", { class: "ek-muted", text: `${number(shown.place[0])} of ${number(shown.place[1])}` }),
      el("button", { "data-focus": "previous", disabled: !shown.previous, text: "Previous", onclick: () => send("document", { doc_id: shown.previous }) }),
      el("button", { "data-focus": "next", disabled: !shown.next, text: "Next", onclick: () => send("document", { doc_id: shown.next }) })),
    el("h2", { tabindex: -1, "data-focus": "open" }, file(shown.file)),
    el("p", { class: "ek-muted", text: shown.decision }),
    el("dl", { class: "ek-answers" }, shown.answers.map((answer) => [
      el("dt", { text: SYSTEMS[answer.of] }),
      el("dd", { class: typeClass(answer.type) }, el("b", { text: typeName(answer.type) }),
        answer.confidence === null ? null : el("span", { class: "ek-muted", text: ` ${percent(answer.confidence)}` }),
        answer.segments.length ? el("span", { class: "ek-answer-pages", text: spans(answer.segments) }) : null)])),
    el("h3", { text: "What differs" }),
    shown.differences.length
      ? el("ul", { class: "ek-differences" }, shown.differences.map((one) => el("li", {}, el("button", {
        "aria-pressed": shown.page === one.page, "data-focus": `difference-${one.page}`, text: one.sentence, onclick: () => send("page", { page: one.page }),
      }))))
      : el("p", { class: "ek-muted", text: "The compared answers do not differ here." }),
    el("h3", { text: `Highlighted on page ${shown.page}` }),
    shown.captions.length
      ? el("ul", { class: "ek-captions" }, shown.captions.map((one) => el("li", { class: `ek-caption-${one.style}` }, el("span", { class: "ek-words", text: one.text }))))
      : el("p", { class: "ek-muted", text: "Nothing on this page was quoted or doubted." }),
  ];

  // The focus follows: into the document that is opened, and back to its row.
  let opened = model.get("document").doc_id || "";
  const moveFocus = (now) => {
    if (now === opened) return;
    const target = now ? root.querySelector('[data-focus="open"]')
      : root.querySelector(`[data-focus="open-${CSS.escape(opened)}"]`) || root.querySelector('[data-focus="head"]');
    opened = now;
    target?.focus();
  };
  const draw = () => {
    drawParts();
    moveFocus(model.get("document").doc_id || "");
  };
  const drawParts = () => {
    const shown = model.get("document");
    const isOpen = Boolean(shown.doc_id);
    const answer = model.get("answer");
    const [notice, problem, simulated] = ["notice", "problem", "simulated"].map((name) => model.get(name));
    root.classList.toggle("ek-explorer-open", isOpen);
    const sentences = [
      simulated ? el("p", { class: "ek-explorer-notice", text: simulated }) : null,
      problem ? el("p", { class: "ek-explorer-problem", text: problem }) : null,
      notice ? el("p", { class: "ek-explorer-notice", text: notice }) : null,
    ];
    if (isOpen) { fill(root, open(shown), sentences); return; }
    fill(root, head(answer), sentences, chips(),
      el("div", { class: "ek-explorer-body" },
        el("aside", { class: "ek-slices", "aria-label": "properties" }, answer.slices.filter((one) => one.is_varied || filters()[one.name]).map(slice)),
        el("div", { class: "ek-parts-column" }, el("div", { class: "ek-parts-row" }, matrix(answer.matrix), reliability(answer.reliability)), documents(answer), rules(answer.rules))));
  };
  const stop = drawnOnChange(model, root, draw);
  announce(model, "notice");
  announce(model, "problem");

  const pressed = (event) => {
    const frame = root.closest(".ek-explorer-frame");
    if (!frame || !frame.contains(event.target) || !model.get("document").doc_id || event.defaultPrevented) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, .ek-contact, .ek-compare, .ek-marking")) return;
    const pane = frame.querySelector(".ek-pane");
    if (event.key === "Escape") send("overview");
    else if (MOVES[event.key] && pane) pane.dispatchEvent(new CustomEvent("ek-do", { detail: MOVES[event.key] }));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  document.addEventListener("keydown", pressed, true);
  return () => {
    stop();
    document.removeEventListener("keydown", pressed, true);
  };
}

export default { render };
