/** Whether a filled Sudoku grid follows the rules. */
export default function sudokuValid(args: { grid: number[][] }): boolean {
  const complete = (cells: number[]): boolean => new Set(cells).size === 9 && cells.every((cell) => cell >= 1 && cell <= 9);
  const indices = Array.from({ length: 9 }, (_, index) => index);
  const rows = args.grid;
  const columns = indices.map((column) => rows.map((row) => row[column]));
  const boxes = indices.map((box) => indices.map((cell) => rows[3 * Math.floor(box / 3) + Math.floor(cell / 3)][3 * (box % 3) + (cell % 3)]));
  return [...rows, ...columns, ...boxes].every(complete);
}
