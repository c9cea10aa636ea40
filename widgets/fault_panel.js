// The error screen: what happened, what to do, and an id to find it in the log.

function render({ model, el: root }) {
  root.classList.add("ek", "ek-fault");
  const draw = () => fill(root, el("div", { class: "ek-fault-card", role: "alert" },
    el("h2", { text: model.get("what") }),
    el("p", { text: `Try again. If it happens again, take another case and report error ${model.get("error_id")} to the people who run evalkit.` }),
    el("p", { class: "ek-muted", text: model.get("reason") }),
    el("div", { class: "ek-row" },
      el("button", { class: "ek-primary", text: "Try again", onclick: () => say(model, { action: "retry" }) }),
      model.get("has_queue") ? el("button", { text: "Back to the queue", onclick: () => say(model, { action: "queue" }) }) : null)));
  return drawnOnChange(model, root, draw);
}

export default { render };
