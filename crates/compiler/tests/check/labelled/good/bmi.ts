/** The body mass index and its class by the WHO. */
export default function bmi(args: { weightKg: number; heightM: number }): { bmi: number; label: string } {
  const value = args.weightKg / args.heightM ** 2;
  const label = value < 18.5 ? 'underweight' : value < 25 ? 'normal' : value < 30 ? 'overweight' : 'obese';
  return { bmi: Math.round(value * 10) / 10, label };
}
