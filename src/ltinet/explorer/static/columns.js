// Form that marks the columns of an uploaded table as inputs and outputs, and sets how the table is read.

export function columnsForm(parts, act) {
  let file = null;
  let blob = null; // the dropped file, to upload it with other options

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
  function readingOptions() {
    const options = new URLSearchParams();
    for (const own of parts.reading.querySelectorAll("[data-option]")) {
      if (own.value.trim()) options.set(own.dataset.option, own.value.trim());
    }
    return options.toString();
  }

  parts["columns-again"].addEventListener("click", () => act.read(blob, readingOptions()));
  parts["columns-close"].addEventListener("click", () => { parts.columns.hidden = true; });

  // Show the form and return the guessed columns. A file that could not be read is shown without columns, to choose how
  // it is read.
  return (upload, source = null) => {
    if (source !== blob) {
      for (const own of parts.reading.querySelectorAll("[data-option]")) own.value = "";
    }
    file = upload;
    blob = source;
    const isRead = upload.columns.length > 0;
    parts["columns-title"].textContent = isRead ? `${upload.name}: ${upload.rows} rows` : upload.name;
    parts.reading.hidden = blob === null;
    parts.reading.open = !isRead;
    for (const own of parts.columns.querySelectorAll("p, [type=submit], [data-id=columns-drive]")) own.hidden = !isRead;
    parts["columns-list"].replaceChildren(...upload.columns.map((name, index) => {
      const label = document.createElement("label");
      const select = document.createElement("select");
      for (const [value, words] of [["drive", "input"], ["answer", "output"], ["", "unused"]]) {
        const option = document.createElement("option");
        option.value = value;
        option.textContent = words;
        select.append(option);
      }
      select.value = upload.roles[index];
      label.append(name, " ", select);
      return label;
    }));
    parts.columns.hidden = false;
    parts["columns-list"].querySelector("select")?.focus();
    return { drive: chosen("drive"), answer: chosen("answer") };
  };
}
