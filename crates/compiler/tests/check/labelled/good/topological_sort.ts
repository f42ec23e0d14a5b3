/** Orders tasks so that each comes after those it depends on. */
export default function topologicalSort(args: { dependencies: Record<string, string[]> }): string[] {
  const order: string[] = [];
  const state = new Map<string, 'visiting' | 'done'>();
  const visit = (task: string, trail: string[]): void => {
    if (state.get(task) === 'done') return;
    if (state.get(task) === 'visiting') throw new Error(`cycle: ${[...trail, task].join(' -> ')}`);
    state.set(task, 'visiting');
    for (const dependency of args.dependencies[task] ?? []) visit(dependency, [...trail, task]);
    state.set(task, 'done');
    order.push(task);
  };
  Object.keys(args.dependencies).forEach((task) => visit(task, []));
  return order;
}
