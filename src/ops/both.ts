/** One listener for two, such as the metrics and the log of the same events; they are told in this order. */
export function both<Event>(first: (event: Event) => void, second: (event: Event) => void): (event: Event) => void {
  return (event) => {
    first(event);
    second(event);
  };
}
