type Loose = Record<string, any>;

/** Any, in every position. */
export default function tool<T = any>(args: { x: any; list: Array<any>; f: Function }): any {
  const y = args.x as any;
  const g = (...rest: any[]) => rest;
  try {
    return (<any>y).z as Loose;
  } catch (error: any) {
    return g(error) as T;
  }
}
