// What is wrong with how the page looks: boxes that overlap, text that is cut, names of ticks on top of each other.
() => {
  const found = [];
  const box = (own) => own.getBoundingClientRect();
  const across = (one, two) => Math.min(one.right, two.right) - Math.max(one.left, two.left);
  const down = (one, two) => Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
  const pairs = (all, act) => all.forEach((one, index) => all.slice(index + 1).forEach((two) => act(one, two)));

  const panels = [...document.querySelectorAll(".panel, .top, .error, .notes")].filter((own) => own.offsetParent);
  pairs(panels, (one, two) => {
    if (across(box(one), box(two)) > 1 && down(box(one), box(two)) > 1) found.push(`${one.className} over ${two.className}`);
  });
  for (const panel of panels) {
    if (panel.scrollWidth > panel.clientWidth + 1) found.push(`${panel.dataset.panel} is wider than its frame`);
  }
  for (const svg of document.querySelectorAll(".figure > svg")) {
    const [frame, name] = [box(svg), svg.parentElement.dataset.id];
    for (const text of svg.querySelectorAll("text")) {
      const own = box(text);
      const isOut = own.left < frame.left - 2 || own.right > frame.right + 2 || own.top < frame.top - 3 || own.bottom > frame.bottom + 3;
      if (isOut) found.push(`${name}: ${text.textContent} is cut`);
    }
    pairs([...svg.querySelectorAll(".axes text")], (one, two) => {
      if (across(box(one), box(two)) > 2 && down(box(one), box(two)) > 4) found.push(`${name}: ${one.textContent} on ${two.textContent}`);
    });
  }
  const ticks = [...document.querySelectorAll(".ticks span")].filter((own) => own.textContent);
  pairs(ticks, (one, two) => { if (across(box(one), box(two)) > 0) found.push("ticks of the slider overlap"); });
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push("the page scrolls sideways");
  return found;
}
