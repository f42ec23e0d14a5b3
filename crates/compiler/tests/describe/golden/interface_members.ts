/** Where a parcel goes. */
interface Address {
  /** Two letters, such as `DE`. */
  country: string;
  zip: string; // as the country writes it
}

interface Base {
  /**
   * In kilograms.
   * @minimum 0.1
   * @maximum 30
   * @default 1
   */
  weight?: number;
}

export interface Parcel extends Base {
  to: Address;
  from: Address;
  /** @deprecated use `tags` */
  readonly label: string | null;
  tags: string[];
  'content-type'?: 'document' | 'goods';
  extra: { [key: string]: number };
}

/** What a parcel costs in cents, and why. */
export default function postage({ weight = 2, ...rest }: Parcel): { cents: number; steps: string[] } {
  return { cents: Math.round(weight * 100), steps: [rest.to.country] };
}
