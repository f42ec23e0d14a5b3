/** Taken out by destructuring. */
export default function tool({ x: { constructor: Other }, y }: { x: () => void; y: () => void }) {
  const { constructor: Maker } = y;
  const { ['construct' + 'or']: Third } = y;
  let constructor;
  ({ constructor } = y);
  return [Maker('return 1'), Other, Third, constructor];
}
