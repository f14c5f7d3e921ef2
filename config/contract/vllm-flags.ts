/**
 * The flags of vLLM that a model's manifest, a pool's `engine.parameters` and `GENERATOR_VLLM_ARGS` may set:
 * memory, GPUs, precision, batching and logs. Other flags could run the code of a model, read or write files,
 * or open ports.
 */
export const vllmFlagsWithValue: readonly string[] = [
  "attention-backend",
  "block-size",
  "cpu-offload-gb",
  "data-parallel-size",
  "dtype",
  "gpu-memory-utilization",
  "kv-cache-dtype",
  "kv-cache-memory-bytes",
  "max-cudagraph-capture-size",
  "max-model-len",
  "max-num-batched-tokens",
  "max-num-seqs",
  "max-parallel-loading-workers",
  "num-gpu-blocks-override",
  "pipeline-parallel-size",
  "quantization",
  "seed",
  "stream-interval",
  "swap-space",
  "tensor-parallel-size",
  "uvicorn-log-level",
];
export const vllmFlagsWithoutValue: readonly string[] = [
  "async-scheduling",
  "disable-custom-all-reduce",
  "disable-log-stats",
  "enable-chunked-prefill",
  "enable-expert-parallel",
  "enable-prefix-caching",
  "enforce-eager",
  "no-async-scheduling",
  "no-enable-chunked-prefill",
  "no-enable-prefix-caching",
  "omni",
];

/**
 * Returns a message with the first rejected argument and the allowed flags, or undefined if every argument is
 * allowed.
 */
export function rejectVllmArguments(args: readonly string[]): string | undefined {
  const foreign = findForeignArgument(args);
  if (foreign === undefined) return undefined;
  const allowed = [...vllmFlagsWithValue, ...vllmFlagsWithoutValue].map((flag) => `--${flag}`).join(", ");
  return `must not contain ${JSON.stringify(foreign).slice(0, 80)}; the allowed flags of vLLM are ${allowed}`;
}

function findForeignArgument(args: readonly string[]): string | undefined {
  let takesValue = false;
  for (const argument of args) {
    const [, flag, value] = /^--([a-z-]+)(=.*)?$/s.exec(argument) ?? [];
    const isKnown = flag === undefined ? takesValue && !argument.startsWith("-") : isAllowed(flag, value);
    if (!isKnown) return argument;
    takesValue = flag !== undefined && value === undefined && vllmFlagsWithValue.includes(flag);
  }
  return undefined;
}

function isAllowed(flag: string, value: string | undefined): boolean {
  return vllmFlagsWithValue.includes(flag) || (value === undefined && vllmFlagsWithoutValue.includes(flag));
}
