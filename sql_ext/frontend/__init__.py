"""The front-end process, which answers the driver's requests over py4j."""
