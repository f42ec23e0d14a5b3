/** Evaluates an arithmetic expression with + - * / and parentheses. */
export default function expressionCalculator(args: { expression: string }): number {
  const tokens = args.expression.match(/\d+(?:\.\d+)?|[-+*/()]/g) ?? [];
  let position = 0;
  const primary = (): number => {
    const token = tokens[position++];
    if (token === '(') {
      const value = sum();
      if (tokens[position++] !== ')') throw new SyntaxError('missing )');
      return value;
    }
    if (token === '-') return -primary();
    const value = Number(token);
    if (Number.isNaN(value)) throw new SyntaxError(`unexpected ${token ?? 'end'}`);
    return value;
  };
  const product = (): number => {
    let value = primary();
    while (tokens[position] === '*' || tokens[position] === '/') {
      value = tokens[position++] === '*' ? value * primary() : value / primary();
    }
    return value;
  };
  const sum = (): number => {
    let value = product();
    while (tokens[position] === '+' || tokens[position] === '-') {
      value = tokens[position++] === '+' ? value + product() : value - product();
    }
    return value;
  };
  return sum();
}
