// The columns of a table that was dropped: which drive, which answer.

export function columnsForm(parts, act) {
  let file = null;

  function chosen(role) {
    const all = [...parts["columns-list"].querySelectorAll("select")];
    return all.flatMap((own, index) => (own.value === role ? [index + 1] : [])).join(",");
  }

  parts.columns.addEventListener("submit", (event) => {
    event.preventDefault();
    act.identify(file, chosen("drive"), chosen("answer"));
    parts.columns.hidden = true;
  });
  parts["columns-drive"].addEventListener("click", () => {
    act.drive(file, chosen("drive"));
    parts.columns.hidden = true;
  });
  parts["columns-close"].addEventListener("click", () => { parts.columns.hidden = true; });

  return (told) => {
    file = told;
    parts["columns-title"].textContent = `${told.name}: ${told.rows} rows`;
    parts["columns-list"].replaceChildren(...told.columns.map((name, index) => {
      const label = document.createElement("label");
      const select = document.createElement("select");
      for (const [value, words] of [["drive", "drives"], ["answer", "answers"], ["", "left out"]]) {
        const option = document.createElement("option");
        option.value = value;
        option.textContent = words;
        select.append(option);
      }
      select.value = index === told.columns.length - 1 && index > 0 ? "answer" : "drive";
      label.append(name, " ", select);
      return label;
    }));
    parts.columns.hidden = false;
    parts["columns-list"].querySelector("select")?.focus();
  };
}
