"""What queries ask of tables, and which indexes that makes worth having."""
