type Unit = 'C' | 'F' | 'K';

/** Converts a temperature between Celsius, Fahrenheit and Kelvin. */
export default function temperature(args: { value: number; from: Unit; to: Unit }): number {
  const celsius =
    args.from === 'C' ? args.value : args.from === 'F' ? ((args.value - 32) * 5) / 9 : args.value - 273.15;
  switch (args.to) {
    case 'C':
      return celsius;
    case 'F':
      return (celsius * 9) / 5 + 32;
    case 'K':
      return celsius + 273.15;
  }
}
