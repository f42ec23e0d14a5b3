/** Local names that happen to be those of globals. */
export default function run(args: { steps: string[] }): string[] {
  const process = (step: string): string => step.trim();
  const window = args.steps.slice(0, 5);
  const fetch = (global: string) => `${global}!`;
  function eval_(self: string) {
    return { self, process: process(self) };
  }
  return window.map(process).map(fetch).map((document) => eval_(document).process);
}
