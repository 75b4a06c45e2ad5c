// Form that marks the columns of an uploaded table as inputs and outputs.

export function columnsForm(parts, act) {
  let file = null;

  function chosen(role) {
    const all = [...parts["columns-list"].querySelectorAll("select")];
    return all.flatMap((select, index) => (select.value === role ? [index + 1] : [])).join(",");
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

  return (upload) => {
    file = upload;
    parts["columns-title"].textContent = `${upload.name}: ${upload.rows} rows`;
    parts["columns-list"].replaceChildren(...upload.columns.map((name, index) => {
      const label = document.createElement("label");
      const select = document.createElement("select");
      for (const [value, words] of [["drive", "input"], ["answer", "output"], ["", "unused"]]) {
        const option = document.createElement("option");
        option.value = value;
        option.textContent = words;
        select.append(option);
      }
      select.value = index === upload.columns.length - 1 && index > 0 ? "answer" : "drive";
      label.append(name, " ", select);
      return label;
    }));
    parts.columns.hidden = false;
    parts["columns-list"].querySelector("select")?.focus();
  };
}
