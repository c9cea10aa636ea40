// The queue: what waits for an expert, worst first.

function render({ model, el: root }) {
  root.classList.add("ek", "ek-queue");

  const card = (row) => {
    const open = (takeOver) => say(model, { action: "open", case_id: row.case_id, take_over: takeOver });
    const held = row.holder && !row.is_mine;
    return el("li", { class: "ek-case", "data-case": row.case_id },
      el("div", { class: "ek-case-what" },
        el("b", { text: row.pdf_filename }),
        el("span", { class: "ek-muted", text: ` ${plural(row.pages, "page")} · ${row.review_reason}` }),
        el("div", { text: row.decision_reason })),
      el("div", { class: "ek-case-counts" },
        ["blocker", "major", "minor"].filter((name) => row[name]).map((name) =>
          el("span", { class: `ek-tag ek-${name.toUpperCase()}`, text: `${row[name]} ${name.toUpperCase()}` }))),
      el("div", { class: "ek-case-do" },
        held ? el("span", { class: "ek-muted", text: `open by ${row.holder} since ${clock(row.since)}` }) : null,
        held
          ? el("button", { text: "Take over", onclick: () => open(true) })
          : el("button", { text: row.is_mine ? "Go on" : "Open", onclick: () => open(false) })));
  };

  const draw = () => {
    const rows = model.get("rows");
    const counts = model.get("counts");
    fill(root, el("div", { class: "ek-queue-inner" },
      el("div", { class: "ek-queue-head" },
        el("h1", { text: rows.length ? `${plural(rows.length, "case")} waiting` : "Nothing waits for you." }),
        el("span", { class: "ek-muted", text: rows.length ? `${counts.in_review || 0} open now · ${counts.done_today || 0} done today` : `${counts.done_today || 0} done today.` }),
        el("span", { class: "ek-grow" }),
        el("button", { text: "Refresh", onclick: () => say(model, { action: "refresh" }) }),
        rows.length ? el("button", { class: "ek-primary", text: "Next case", onclick: () => say(model, { action: "next" }) }) : null),
      model.get("notice") ? el("p", { class: "ek-queue-notice", role: "status", text: model.get("notice") }) : null,
      rows.length
        ? el("ul", { class: "ek-cases" }, rows.map(card))
        : el("p", { text: "New cases appear here when documents have been run." })));
  };
  model.on("change", draw);
  draw();
}

export default { render };
