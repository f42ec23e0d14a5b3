/** Reads the environment. */
export default function tool(): string {
  const { HOME } = process.env;
  return HOME;
}
