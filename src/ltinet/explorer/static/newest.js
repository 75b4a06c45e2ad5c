// One request at a time; of later ones only the newest is kept, so that a drag ends with the view of its last position.

const PATIENCE = 1000; // milliseconds after which a request is cancelled whose response will not be shown

// `leaves` returns whether a second state makes the response for the first useless; `abandon` cancels a request.
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
