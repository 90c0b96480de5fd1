"""The front-end process: receives the driver's requests over py4j, and serves them."""
