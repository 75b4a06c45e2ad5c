// One question at a time, and the newest wish waits: a drag draws all that there is time for and ends where it ended.

export function newestFirst(ask, show, fail, busy) {
  let running = false;
  let wish = null;

  async function run() {
    running = true;
    while (wish !== null) {
      const [now, began] = [wish, performance.now()];
      wish = null;
      busy(true, began);
      try {
        const answer = await ask(now);
        show(answer, now, wish === null);
      } catch (error) {
        if (wish === null) fail(error, now);
      }
    }
    running = false;
    busy(false);
  }

  return (state) => {
    wish = state;
    if (!running) run();
  };
}
