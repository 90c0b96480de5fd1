"""The front-end process, which receives requests of the driver over py4j and answers them."""
