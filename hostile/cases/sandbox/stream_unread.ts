// expect: ERR_ISOLATE_MEMORY | ERR_ISOLATE_TIMEOUT
export default () => {
  const chunk = 'x'.repeat(1_000_000);
  new ReadableStream({ start(controller) { for (;;) controller.enqueue(chunk + Math.random()); } });
};
