export default function Page() {
  return <p>Send a POST request to /api/agent.</p>;
}
