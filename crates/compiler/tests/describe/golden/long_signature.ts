interface Settings {
  firstLongName: string;
  secondLongName: string;
  thirdLongName: string;
  fourthLongName: string;
  fifthLongName: string;
  sixthLongName: string;
}
type Callback = (error: Error | null, /* the value */ value?: string) => void;

/**
 * Has more to say than fits on a line.
 *
 * ```ts
 * @example inside of code
 * ```
 */
export default function settings(args: {
  settings: Settings
  callback: Callback
  'quoted  name': "two  blanks"
  method(value: number): string
  [key: string]: unknown
}, ...more: { theFirstOfManyOptions: string; theSecondOfManyOptions: string; theThirdOfManyOptions: string }[]): Date {
  return new Date();
}
