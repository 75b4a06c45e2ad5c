// One question at a time, and the newest wish waits: a drag draws all that there is time for and ends where it ended.

const PATIENCE = 1000; // milliseconds that an answer may still take which nobody will look at

// `leaves` says of two states whether whoever wishes for the second has left the first; `abandon` ends what is asked.
export function newestFirst({ ask, show, fail, busy, leaves, abandon }) {
  let asked = null;
  let began = 0;
  let wish = null;
  let timer = null;

  async function run() {
    while (wish !== null) {
      [asked, wish, began] = [wish, null, performance.now()];
      busy(true, began);
      try {
        const answer = await ask(asked);
        show(answer, asked, wish === null);
      } catch (error) {
        if (wish === null) fail(error, asked);
      }
      clearTimeout(timer);
    }
    asked = null;
    busy(false);
  }

  return (state) => {
    wish = state;
    if (asked === null) { run(); return; }
    clearTimeout(timer);
    if (leaves(asked, state)) timer = setTimeout(abandon, Math.max(0, began + PATIENCE - performance.now()));
  };
}
