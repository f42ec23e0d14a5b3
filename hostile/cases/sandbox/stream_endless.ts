// expect: ERR_ISOLATE_TIMEOUT
export default async () => {
  for await (const chunk of new ReadableStream({ pull: (controller) => controller.enqueue(1) })) void chunk;
};
