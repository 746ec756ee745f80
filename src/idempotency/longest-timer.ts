/** The longest wait of a Node timer, 24 days; a longer one fires at once. Milliseconds. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;
