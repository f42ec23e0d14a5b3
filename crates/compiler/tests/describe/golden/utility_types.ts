interface User {
  id: string;
  name: string;
  email?: string;
  age: number | null;
}

type Patch = { id: User['id'] } & Partial<Omit<User, 'id'>>;

/** Every utility type. */
export default async function change(args: {
  patch: Patch;
  picked: Pick<User, 'id' | 'name'>;
  whole: Required<User>;
  scores: Record<string, number>;
  limits: Record<'min' | 'max', number>;
  frozen: Readonly<{ a: Array<string> }>;
  field: keyof User;
  age: NonNullable<User['age']>;
  mode: Exclude<'a' | 'b' | 'c', 'c'>;
  mapped: { [K in 'x' | 'y']?: boolean };
  lookup: Map<string, number>;
}): Promise<ReadonlyArray<User>> {
  return [];
}
